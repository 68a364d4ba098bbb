"""Random transforms: what they draw depends on the seed, the epoch and the sample, and on nothing else."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import grainstore
from grainstore import Loader
from grainstore._core import _draw_seed
from grainstore._draws import takes_generator


def test_seeds_are_those_of_the_definition() -> None:
    assert _draw_seed(0, 0, 0, 0) == 0xC224_ACE9_53DD_EC8B_CE01_5051_57D9_96BA
    assert _draw_seed(7, 3, 1234) == 0x2F03_A735_FB36_A652_A34F_8C03_3F58_555D
    assert _draw_seed(7, 3, 1234, 1) == 0xCD52_9717_C847_747E_F0A9_5D7F_6E6C_205B
    assert _draw_seed(2**64 - 1, 1, 2**64 - 1, 0) == 0x3EFA_8AD8_7F86_E012_3FED_781C_B37F_DF54


def with_generator(sample: dict[str, Any], generator: np.random.Generator) -> tuple[int, float]:
    return sample["label"], generator.random()


def drawn(loader: Loader) -> dict[int, float]:
    """By label."""
    return {int(label): float(number) for labels, numbers in loader for label, number in zip(labels, numbers, strict=True)}


def test_a_transform_with_a_second_parameter_gets_a_generator_of_its_sample(plain: grainstore.Dataset) -> None:
    view = plain[:400]
    wanted = {label: np.random.Generator(np.random.PCG64(_draw_seed(5, 2, label))).random() for label in range(400)}
    for num_threads, batch_size, world_size in product((1, 8), (7, 64), (1, 2)):
        found = {}
        for rank in range(world_size):
            options: dict[str, Any] = {"rank": rank, "world_size": world_size, "num_threads": num_threads}
            found |= drawn(Loader(view, batch_size, seed=5, epoch=2, transform=with_generator, **options))
        assert found == wanted
    assert drawn(Loader(view, 64, seed=5, epoch=3, transform=with_generator)) != wanted


def test_draws_continue_after_a_resume(plain: grainstore.Dataset) -> None:
    whole = drawn(Loader(plain, 30, seed=1, transform=with_generator))
    loader = Loader(plain, 30, seed=1, transform=with_generator, num_threads=4)
    batches = iter(loader)
    found = {}
    for _ in range(5):
        labels, numbers = next(batches)
        found |= dict(zip(labels.tolist(), numbers.tolist(), strict=True))
    resumed = Loader(plain, 17, seed=1, transform=with_generator)
    resumed.load_state_dict(loader.state_dict())
    assert found | drawn(resumed) == whole
    # The next pass is the next epoch.
    assert drawn(resumed) == drawn(Loader(plain, 30, seed=1, epoch=1, transform=with_generator))


def _one(sample: Any) -> None: ...
def _two(sample: Any, generator: Any) -> None: ...
def _named(sample: Any, generator: Any = None) -> None: ...
def _option(sample: Any, size: int = 3) -> None: ...
def _any(*samples: Any) -> None: ...


class _Callable:
    def __call__(self, sample: Any, draws: Any) -> None: ...


@pytest.mark.parametrize(
    ("transform", "takes"),
    [(_one, False), (_two, True), (_named, True), (_option, False), (_any, False), (_Callable(), True), (dict, False), (len, False)],
)
def test_what_counts_as_a_second_parameter(transform: Any, takes: bool) -> None:
    assert takes_generator(transform) == takes
