"""Views that hold samples several times, and epochs that draw samples by weights."""

from __future__ import annotations

import multiprocessing
import pickle
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grainstore
from grainstore import Loader

ORDERS: tuple[Any, ...] = ("full", "chunked", "sequential")


def visits(loader: Any) -> list[tuple[int, int, int]]:
    """Position, ordinal and repeat of every visit."""
    seen = []
    for batch in loader:
        assert batch["label"].tolist() == batch.ordinals.tolist()
        assert (batch.ordinals.dtype, batch.repeats.dtype) == (np.int64, np.int64)
        seen += zip(batch.positions.tolist(), batch.ordinals.tolist(), batch.repeats.tolist(), strict=True)
    return seen


@pytest.fixture
def counted(tmp_path: Path) -> grainstore.Dataset:
    """300 samples whose label is their ordinal."""
    with grainstore.Writer(tmp_path / "counted.grain", {"image": "bytes", "label": "int64"}, keyed=False) as writer:
        for number in range(300):
            writer.write(image=bytes(50), label=number)
    return grainstore.open(tmp_path / "counted.grain")


@pytest.mark.parametrize("order", ORDERS)
def test_an_epoch_visits_a_sample_as_often_as_its_view_has_it(counted: grainstore.Dataset, order: Any) -> None:
    numbers = [5, 3, 299, 3, 3, 7, 5, *range(100, 200), *range(150, 160)]
    view = counted.select(numbers)
    wanted = sorted((number, repeat) for number, count in Counter(numbers).items() for repeat in range(count))
    for world_size in (1, 2, 24):
        seen = [visit for rank in range(world_size) for visit in visits(Loader(view, 7, order=order, rank=rank, world_size=world_size, tail="short"))]
        assert sorted(visit[1:] for visit in seen) == wanted
    ones = list(Loader(view, None, order=order))
    assert Counter(sample["label"] for sample in ones) == Counter(numbers)


def test_a_view_without_repeats_has_none(counted: grainstore.Dataset) -> None:
    assert {repeat for _, _, repeat in visits(Loader(counted, 64))} == {0}
    batch = counted.select([4, 4]).get_batch([0, 1])
    assert batch.ordinals.tolist() == [4, 4] and batch.repeats.tolist() == [0, 0]


@pytest.mark.parametrize("order", ORDERS)
def test_weights_draw_samples_for_each_epoch(counted: grainstore.Dataset, order: Any) -> None:
    weights = np.zeros(300)
    weights[10:20] = 1
    weights[50] = 10
    loader = Loader(counted, 100, order=order, seed=4, weights=weights, num_samples=4000)
    assert len(loader) == 40
    first, second = visits(loader), visits(loader)
    counts = Counter(ordinal for _, ordinal, _ in first)
    assert set(counts) == {*range(10, 20), 50}
    assert 1800 < counts[50] < 2200 and all(130 < counts[number] < 270 for number in range(10, 20))
    assert Counter(ordinal for _, ordinal, _ in second) != counts
    assert visits(Loader(counted, 100, order=order, seed=4, weights=weights.tolist(), num_samples=4000)) == first
    assert visits(Loader(counted, 100, order=order, seed=4, epoch=1, weights=weights, num_samples=4000)) == second


def test_weights_are_those_of_the_samples_of_a_view_in_its_order(counted: grainstore.Dataset) -> None:
    view = counted.select([250, 3, 250, 100])
    assert {o for _, o, _ in visits(Loader(view, 10, weights=[1, 0, 0, 0]))} == {250}
    assert {o for _, o, _ in visits(Loader(view, 10, weights=[0, 0, 0, 1], num_samples=3))} == {100}
    drawn = Counter(o for _, o, _ in visits(Loader(view, 10, weights=[1, 2, 3, 0], num_samples=6000)))
    assert set(drawn) == {250, 3} and 3700 < drawn[250] < 4300
    assert len(Loader(view, None, weights=[1, 1, 1, 1], num_samples=11)) == 11
    reverse = counted[::-1]
    assert {o for _, o, _ in visits(Loader(reverse, 10, weights=np.arange(300) == 0))} == {299}


@pytest.mark.parametrize("order", ORDERS)
def test_a_draw_resumes_anywhere_with_other_ranks_and_batches(counted: grainstore.Dataset, order: Any) -> None:
    options: dict[str, Any] = {"order": order, "seed": 2, "weights": np.arange(300) % 7, "num_samples": 500}
    whole = sorted(visits(Loader(counted, 10, **options)))
    for world_size, batches in product((1, 3), (0, 1, 4, 11)):
        loader = Loader(counted, 10, rank=0, world_size=world_size, **options)
        running = iter(loader)
        for _ in range(batches):
            next(running)
        state = loader.state_dict()
        seen = []
        for rank in range(4):
            resumed = Loader(counted, 6, rank=rank, world_size=4, tail="short", **options)
            resumed.load_state_dict(state)
            seen += visits(resumed)
        assert sorted(seen) == whole[state["position"] :]


def test_a_state_of_other_weights_is_refused(counted: grainstore.Dataset) -> None:
    ones = np.ones(300)
    state = Loader(counted, 10, weights=ones).state_dict()
    Loader(counted, 10, weights=ones * 2).load_state_dict(state)
    for other in ({"weights": ones + (np.arange(300) == 4)}, {"weights": ones, "num_samples": 299}, {}):
        with pytest.raises(grainstore.InvalidState, match="drawn by the weights") as refused:
            Loader(counted, 10, **other).load_state_dict(state)
        assert "weights= and num_samples=" in str(refused.value) + "".join(getattr(refused.value, "__notes__", []))
    with pytest.raises(grainstore.InvalidState, match="of an epoch without weights"):
        Loader(counted, 10, weights=ones).load_state_dict(Loader(counted, 10).state_dict())


def test_weights_that_cannot_be_used_are_refused(counted: grainstore.Dataset) -> None:
    ones = np.ones(300)
    masked = np.ma.masked_equal(np.arange(300), 3)
    for weights, num_samples, match in (
        (ones[:-1], None, "weights has 299 numbers, the view has 300 samples"),
        (np.where(np.arange(300) == 7, np.nan, 1), None, "weight 7 is NaN"),
        (-ones, None, "weight 0 is -1"),
        (np.full(300, np.inf), None, "weight 0 is inf"),
        (ones * 0, None, "all 300 weights are 0"),
        (masked, None, "masked"),
        (ones, 0, "num_samples is 0"),
        (None, 10, "weights is missing"),
    ):
        with pytest.raises(grainstore.InvalidOption, match=match):
            Loader(counted, 10, weights=weights, num_samples=num_samples)
    for weights, num_samples in ((["a"] * 300, None), (ones.reshape(100, 3), None), (ones, 2.5), (ones, True)):
        with pytest.raises(TypeError):
            Loader(counted, 10, weights=weights, num_samples=num_samples)  # type: ignore[arg-type]
    # The index that is reported is the view's.
    with pytest.raises(grainstore.InvalidOption, match="weight 1 is -2"):
        Loader(counted.select([9, 1]), 10, weights=[1, -2])


def first_visits(loader: Any) -> list[tuple[int, int, int]]:
    return visits(loader)[:20]


def test_a_loader_with_weights_pickles(counted: grainstore.Dataset) -> None:
    loader = Loader(counted.select([5, 1, 5, 200]), 10, seed=1, weights=[1, 2, 3, 4], num_samples=60)
    expected = first_visits(loader)
    loader.set_epoch(0)
    assert first_visits(pickle.loads(pickle.dumps(loader))) == expected
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(first_visits, (loader,)) == expected
