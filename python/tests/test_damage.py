"""Damage of files: what is raised, with which message, and what is still read."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import made
import pytest

import grainstore

DAMAGED = 123


class Damage(NamedTuple):
    """A dataset, and where in its segment the damaged sample begins."""

    path: Path
    offset: int

    @property
    def segment(self) -> Path:
        return self.path / "00000.seg"


@pytest.fixture
def damage(tmp_path: Path) -> Damage:
    """A dataset of 200 samples; the first bit of sample `DAMAGED` has turned."""
    path = tmp_path / "damaged.grain"
    with grainstore.Writer(path, {"image": "bytes", "label": "int64"}) as writer:
        for label in range(200):
            writer.write(key=made.key(label), image=made.plain_image(label), label=label)
    content = bytearray((path / "00000.seg").read_bytes())
    offset = content.index(made.plain_image(DAMAGED))
    content[offset] ^= 1
    (path / "00000.seg").write_bytes(content)
    return Damage(path, offset)


def check(error: grainstore.DamagedSample, damage: Damage) -> None:
    assert error.ordinal == DAMAGED
    assert error.key == made.key(DAMAGED).encode()
    assert error.segment == str(damage.segment)
    assert error.offset == damage.offset
    assert made.key(DAMAGED) in str(error)


@pytest.mark.parametrize("io", ["direct", "buffered", "mapped"])
def test_a_damaged_sample_is_never_handed_out(damage: Damage, io: Any) -> None:
    with grainstore.open(damage.path, io=io) as ds:
        reads: list[Callable[[], object]] = [
            lambda: ds[DAMAGED],
            lambda: ds[made.key(DAMAGED)],
            lambda: ds.get_batch([5, DAMAGED]),
            lambda: ds.__getitems__([DAMAGED]),
            lambda: list(ds),
            lambda: list(grainstore.Loader(ds, 32)),
            lambda: list(grainstore.Loader(ds, None)),
        ]
        for read in reads:
            with pytest.raises(grainstore.DamagedSample) as raised:
                read()
            check(raised.value, damage)
            check(pickle.loads(pickle.dumps(raised.value)), damage)
        assert ds[DAMAGED - 1]["image"] == made.plain_image(DAMAGED - 1)
        assert ds.column("label").tolist() == list(range(200))


@pytest.mark.parametrize("order", ["full", "chunked", "sequential"])
def test_an_epoch_continues_without_damaged_samples_on_request(damage: Damage, order: Any) -> None:
    with grainstore.open(damage.path) as ds:
        loader = grainstore.Loader(ds, 32, order=order, on_damage="skip")
        seen, skipped = [], []
        for batch in loader:
            assert batch["image"].tolist() == [made.plain_image(label) for label in batch["label"].tolist()]
            seen += batch["label"].tolist()
            skipped += batch.skipped
        assert sorted(seen) == [label for label in range(200) if label != DAMAGED]
        [(ordinal, why)] = skipped
        assert ordinal == DAMAGED
        assert made.key(DAMAGED) in why
        assert loader.stats()["skipped_samples"] == 1
        transformed = grainstore.Loader(ds, None, order=order, on_damage="skip", transform=lambda one: one["label"])
        assert sorted(transformed) == sorted(seen)


def test_verify_finds_what_is_damaged(damage: Damage, made_path: Path) -> None:
    sound = grainstore.verify(made_path)
    assert sound["ok"]
    assert (sound["samples"], sound["damages"]) == (made.COUNT, [])
    report = grainstore.verify(damage.path)
    assert not report["ok"]
    assert (sound["damaged"], report["damaged"]) == (0, 1)
    [found] = report["damages"]
    assert found["ordinal"] == DAMAGED
    assert found["key"] == made.key(DAMAGED).encode()
    assert found["segment"] == "00000.seg"
    assert found["what"]


def test_a_damaged_index_is_refused(damage: Damage) -> None:
    damage.segment.write_bytes(damage.segment.read_bytes()[:-100])
    with pytest.raises(grainstore.Damaged) as raised:
        grainstore.open(damage.path)
    assert raised.value.path == str(damage.segment)
    (damage.path / "manifest.json").write_text("{}")
    with pytest.raises(grainstore.NotADataset, match="manifest"):
        grainstore.open(damage.path)


@pytest.mark.parametrize("order", ["full", "sequential"])
def test_a_run_of_single_samples_that_skips_is_resumed_without_repeats(damage: Damage, order: Any) -> None:
    with grainstore.open(damage.path) as ds:
        for cut in (1, 100, 124, 198):
            loader = grainstore.Loader(ds, None, order=order, seed=2, on_damage="skip")
            before = [sample["label"] for sample, _ in zip(loader, range(cut))]
            resumed = grainstore.Loader(ds, None, order=order, seed=2, on_damage="skip")
            resumed.load_state_dict(loader.state_dict())
            after = [sample["label"] for sample in resumed]
            # `zip` takes a sample from the loader before it notices that its other argument has ended.
            seen = sorted(before + after)
            assert len(seen) == len(set(seen)) and set(range(200)) - set(seen) <= {DAMAGED} | set(handed(ds, order, cut))


def handed(ds: grainstore.Dataset, order: Any, cut: int) -> list[int]:
    """The sample that was returned after `cut` others."""
    loader = grainstore.Loader(ds, None, order=order, seed=2, on_damage="skip")
    return [sample["label"] for sample, _ in zip(loader, range(cut + 1))][cut:]


@pytest.mark.parametrize("order", ["full", "chunked", "sequential"])
def test_a_damaged_sample_that_an_epoch_visits_often_is_skipped_at_every_visit(damage: Damage, order: Any) -> None:
    numbers = [5, DAMAGED, 7, DAMAGED, DAMAGED, *range(100, 180), DAMAGED]
    with grainstore.open(damage.path) as ds:
        view = ds.select(numbers)
        loader = grainstore.Loader(view, 16, order=order, on_damage="skip")
        seen = [label for batch in loader for label in batch["label"].tolist()]
        assert sorted(seen) == sorted(number for number in numbers if number != DAMAGED)
        assert loader.stats()["skipped_samples"] == numbers.count(DAMAGED)
        with pytest.raises(grainstore.DamagedSample) as raised:
            list(grainstore.Loader(view, 16, order=order))
        check(raised.value, damage)
