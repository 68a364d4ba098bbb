"""Random transforms: what they draw depends on the seed, the epoch and the sample, and on nothing else."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
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


def drawn(loader: Iterable[Any]) -> dict[int, float]:
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


# Transforms with one parameter, which draw from the generators of the process


def _from_random(sample: dict[str, Any]) -> tuple[int, float]:
    return sample["label"], random.random()


def _from_numpy(sample: dict[str, Any]) -> tuple[int, float]:
    return sample["label"], np.random.random() + np.random.randn()


def _late(sample: dict[str, Any]) -> tuple[int, float]:
    """Draws for few samples, most likely not for the first."""
    return sample["label"], random.random() if sample["label"] % 50 == 7 else 0.0


def _of_sample(seed: int, epoch: int, label: int) -> float:
    return random.Random(_draw_seed(seed, epoch, label)).random()


@pytest.mark.parametrize("transform", [_from_random, _from_numpy, _late])
def test_global_generators_are_seeded_for_each_sample(plain: grainstore.Dataset, transform: Any) -> None:
    view = plain[:400]
    wanted = drawn(Loader(view, 50, seed=5, epoch=2, transform=transform, num_threads=1, prefetch=0))
    if transform is _from_random:
        assert wanted == {label: _of_sample(5, 2, label) for label in range(400)}
    assert len(wanted) == 400 and wanted != drawn(Loader(view, 50, seed=5, epoch=3, transform=transform))
    for num_threads, batch_size, world_size in ((1, 7, 1), (2, 64, 1), (4, 50, 1), (4, 20, 2)):
        found = {}
        for rank in range(world_size):
            options: dict[str, Any] = {"rank": rank, "world_size": world_size, "num_threads": num_threads}
            found |= drawn(Loader(view, batch_size, seed=5, epoch=2, transform=transform, **options))
        assert found == wanted
    loader = Loader(view, 30, seed=5, epoch=2, transform=transform, num_threads=4)
    batches = iter(loader)
    begun = [next(batches) for _ in range(4)]
    resumed = Loader(view, 40, seed=5, transform=transform, num_threads=2)
    resumed.load_state_dict(loader.state_dict())
    assert drawn(begun) | drawn(resumed) == wanted


@pytest.mark.parametrize("transform", [_from_random, _from_numpy])
def test_the_loops_own_draws_are_undisturbed(plain: grainstore.Dataset, transform: Any) -> None:
    def own_draws(batches: Any) -> list[float]:
        random.seed(1)
        np.random.seed(1)
        return [random.random() + np.random.random() + np.random.randn() for _ in batches]

    wanted = own_draws(range(10))
    assert own_draws(Loader(plain[:400], 40, transform=transform, num_threads=4)) == wanted
    assert own_draws(Loader(plain[:400], 40, transform=dict, num_threads=4)) == wanted


def test_the_loops_own_draws_do_not_take_the_threads_away(plain: grainstore.Dataset) -> None:
    threads = []

    def noted(sample: dict[str, Any]) -> int:
        threads.append(threading.current_thread().name)
        return sample["label"]

    labels = []
    for batch in Loader(plain, 50, transform=noted, num_threads=2):
        random.random()
        labels += batch.tolist()
    assert sorted(labels) == list(range(1000))
    # But for the first samples, and at most two batches that are made again.
    assert sum(name.startswith("grain-transform") for name in threads) == 984
    assert len(threads) <= 1000 + 2 * 50


def test_one_thread_is_reported_with_the_remedy(plain: grainstore.Dataset, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.MonkeyPatch.context() as patch, caplog.at_level("INFO", logger="grainstore"):
        patch.setattr("grainstore._transforms._noted", False)
        for _ in range(2):
            drawn(Loader(plain, 100, transform=_from_random, num_threads=2))
    notes = [record.message for record in caplog.records if "generator" in record.message]
    assert len(notes) == 1 and "one at a time" in notes[0] and "second parameter" in notes[0]
