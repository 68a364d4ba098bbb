"""Loaders: which samples an epoch has, in which order, in which batches, and what is made of them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest

import grainstore
from grainstore import Loader

ORDERS: tuple[Any, ...] = ("full", "chunked", "sequential")
TAILS: tuple[Any, ...] = ("short", "drop", "pad")


def labels(loader: Loader) -> list[list[int]]:
    return [batch["label"].tolist() for batch in loader]


@pytest.mark.parametrize(("order", "world_size"), [*product(ORDERS, (1, 2, 3, 5))])
def test_ranks_share_every_epoch_exactly(plain: grainstore.Dataset, order: Any, world_size: int) -> None:
    view = plain[:97]
    for batch_size, tail in product((1, 30, 97, 200), TAILS):
        ranks = []
        for rank in range(world_size):
            loader = Loader(view, batch_size, order=order, seed=3, rank=rank, world_size=world_size, tail=tail)
            batches = list(loader)
            assert len(batches) == len(loader)
            ranks.append(batches)
        counts = {len(batches) for batches in ranks}
        assert max(counts) - min(counts) == (tail == "short" and 0 < 97 % (batch_size * world_size) < world_size)
        seen = [label for batches in ranks for batch in batches for label in batch["label"].tolist()]
        padded = sum(batch.padded_count for batches in ranks for batch in batches)
        lengths = {len(batch) for batches in ranks for batch in batches}
        full = batch_size * world_size
        if tail == "short":
            assert sorted(seen) == list(range(97))
            assert 1 <= min(lengths) and max(lengths) <= batch_size
        elif tail == "drop":
            assert len(seen) == len(set(seen)) == 97 // full * full
            assert lengths <= {batch_size}
        else:
            assert sorted(set(seen)) == list(range(97))
            assert len(seen) - 97 == padded
            assert lengths == {batch_size}
        assert (padded > 0) == (tail == "pad" and 97 % full > 0)


@pytest.mark.parametrize("order", ORDERS)
def test_batches_of_all_ranks_together_are_those_of_one(plain: grainstore.Dataset, order: Any) -> None:
    whole = labels(Loader(plain, 60, order=order, seed=9))
    parts = [labels(Loader(plain, 20, order=order, seed=9, rank=rank, world_size=3)) for rank in range(3)]
    for step, batch in enumerate(whole):
        assert sorted(batch) == sorted(label for part in parts for label in part[step])


def test_samples_come_one_by_one_where_no_batch_is_asked_for(plain: grainstore.Dataset) -> None:
    for order, world_size in product(ORDERS[:2], (1, 3)):
        seen = []
        for rank in range(world_size):
            loader = Loader(plain, None, order=order, rank=rank, world_size=world_size, tail="short")
            samples = list(loader)
            assert len(samples) == len(loader)
            assert all(sample["image"] == made.plain_image(sample["label"]) for sample in samples)
            seen += [sample["label"] for sample in samples]
        assert sorted(seen) == list(range(1000))
    for tail, count in zip(TAILS, (333, 333, 334), strict=True):
        loader = Loader(plain, None, rank=1, world_size=3, tail=tail)
        assert len(loader) == len(list(loader)) == count


def test_single_samples_come_in_the_order_of_batches(plain: grainstore.Dataset) -> None:
    for order in ORDERS:
        single = [sample["label"] for sample in Loader(plain, None, order=order, seed=4)]
        assert single == sum(labels(Loader(plain, 1, order=order, seed=4)), [])


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_is_that_of_the_command_plan(plain: grainstore.Dataset, order: Any) -> None:
    for rank, world_size, epoch in ((0, 1, 0), (1, 2, 5)):
        loader = Loader(plain, 64, order=order, seed=11, epoch=epoch, rank=rank, world_size=world_size)
        options = {"order": order, "seed": 11, "epoch": epoch, "rank": rank, "world": world_size, "batch-size": 64}
        planned = subprocess.run(
            [sys.executable, "-m", "grainstore._command", "plan", plain.paths[0], "--quiet"]
            + [word for name, value in options.items() for word in (f"--{name}", str(value))],
            capture_output=True,
            check=True,
            timeout=120,
        )
        assert [int(line) for line in planned.stdout.split()] == sum(labels(loader), [])


def test_seed_and_epoch_decide_the_order_alone(plain: grainstore.Dataset) -> None:
    first = labels(Loader(plain, 100, seed=1, epoch=2))
    assert labels(Loader(plain, 100, seed=1, epoch=2, prefetch_next_epoch=False)) == first
    assert labels(Loader(grainstore.open(plain.paths), 100, seed=1, epoch=2)) == first
    assert sum(labels(Loader(plain, 50, seed=1, epoch=2)), []) == sum(first, [])
    assert labels(Loader(plain, 100, seed=2, epoch=2)) != first
    assert labels(Loader(plain, 100, seed=1, epoch=3)) != first
    assert sum(labels(Loader(plain, 100, order="sequential")), []) == list(range(1000))


def test_each_pass_is_the_next_epoch(plain: grainstore.Dataset) -> None:
    for followed in (True, False, None):
        loader = Loader(plain, 100, seed=1, prefetch_next_epoch=followed)
        passes = []
        for epoch in range(3):
            assert loader.epoch == epoch
            passes.append(labels(loader))
        assert passes == [labels(Loader(plain, 100, seed=1, epoch=epoch)) for epoch in range(3)]
        loader.set_epoch(1)
        assert labels(loader) == passes[1]
        assert loader.epoch == 2


def test_the_next_epoch_is_read_ahead_once_the_loop_goes_on(plain: grainstore.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_ahead(**options: Any) -> list[bool]:
        """Of each of three passes."""
        begun: list[bool] = []
        begin = Loader._begin

        def noted(loader: Loader, resume: Any, *, planned: bool) -> Any:
            if not planned:
                begun.append(loader._is_followed())
            return begin(loader, resume, planned=planned)

        loader = Loader(plain, 100, **options)
        with monkeypatch.context() as patch:
            patch.setattr(Loader, "_begin", noted)
            for number in range(3):
                assert sum(len(batch) for batch in loader) == 1000
                if not begun[-1] and number == 0:
                    # Nothing but this epoch.
                    assert loader.stats()["read_bytes"] == loader.stats()["stored_bytes"]
        return begun

    assert read_ahead() == [False, True, True]
    assert read_ahead(prefetch_next_epoch=True) == [True] * 3
    assert read_ahead(prefetch_next_epoch=False) == [False] * 3


def test_a_pass_that_is_broken_off_begins_again(plain: grainstore.Dataset) -> None:
    loader = Loader(plain, 100)
    whole = labels(Loader(plain, 100))
    for batch in loader:
        first = batch["label"].tolist()
        break
    assert loader.epoch == 0
    assert [first, whole] == [whole[0], labels(loader)]
    assert loader.epoch == 1


def test_views_are_shuffled_too(plain: grainstore.Dataset) -> None:
    for view in (plain[100:200], plain.filter("label >= 100 and label < 200"), plain.select(range(199, 99, -1))):
        for order in ORDERS:
            seen = sum(labels(Loader(view, 7, order=order)), [])
            assert sorted(seen) == list(range(100, 200))
            assert (seen == list(range(100, 200))) == (order == "sequential")


def test_batches_know_their_samples_and_their_place_in_the_epoch(ds: grainstore.Dataset) -> None:
    at = 0
    for batch in Loader(ds, 32, seed=5):
        assert batch.positions.tolist() == list(range(at, at + len(batch)))
        assert batch["label"].tolist() == batch.ordinals.tolist()
        for sample, ordinal in zip(batch.tolist(), batch.ordinals, strict=True):
            made.assert_same(sample, made.sample(int(ordinal)))
        at += len(batch)
    assert at == made.COUNT


def test_the_environment_gives_the_rank(plain: grainstore.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = labels(Loader(plain, 100, rank=2, world_size=3))
    loader = Loader(plain, 100)
    assert (loader.rank, loader.world_size) == (0, 1)
    for rank, world_size in (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")):
        with monkeypatch.context() as patch:
            patch.setenv(rank, "2")
            patch.setenv(world_size, "3")
            loader = Loader(plain, 100)
            assert (loader.rank, loader.world_size) == (2, 3)
            assert len(loader) == len(wanted)
            assert labels(loader) == wanted
            assert Loader(plain, rank=0, world_size=1).world_size == 1
            patch.setenv(rank, "two")
            with pytest.raises(grainstore.InvalidOption, match=rank):
                labels(loader)


def test_a_transform_sees_each_sample_once_and_order_is_kept(plain: grainstore.Dataset) -> None:
    wanted = labels(Loader(plain, 30, seed=2))
    for num_threads, prefetch in ((1, 0), (3, 0), (8, 5)):
        loader = Loader(
            plain,
            30,
            seed=2,
            num_threads=num_threads,
            prefetch=prefetch,
            transform=lambda sample: (sample["label"], np.frombuffer(sample["image"], np.uint8)),
        )
        for (found, images), batch in zip(loader, wanted, strict=True):
            assert found.tolist() == batch
            assert images.shape == (len(batch), 80)
            assert [image.tobytes() for image in images] == [made.plain_image(label) for label in batch]


def test_transformed_samples_come_one_by_one_too(plain: grainstore.Dataset) -> None:
    wanted = [sample["label"] for sample in Loader(plain, None, seed=6)]
    assert list(Loader(plain, None, seed=6, transform=lambda sample: sample["label"])) == wanted


def test_collate_makes_the_batch(plain: grainstore.Dataset) -> None:
    wanted = labels(Loader(plain, 300))
    assert list(Loader(plain, 300, collate=lambda samples: [sample["label"] for sample in samples])) == wanted
    assert list(Loader(plain, 300, transform=lambda sample: sample["label"], collate=list)) == wanted


def test_what_is_transformed_is_stacked_by_its_members(plain: grainstore.Dataset) -> None:
    def transform(sample: dict[str, Any]) -> dict[str, Any]:
        label = sample["label"]
        return {"array": np.full((2, 3), label), "nested": {"number": label / 2}, "text": str(label), "both": (label, True)}

    for made_batch, batch in zip(Loader(plain, 40, transform=transform), labels(Loader(plain, 40)), strict=True):
        assert list(made_batch) == ["array", "nested", "text", "both"]
        assert made_batch["array"].shape == (len(batch), 2, 3)
        assert made_batch["array"][:, 1, 1].tolist() == batch
        assert made_batch["nested"]["number"].tolist() == [label / 2 for label in batch]
        assert made_batch["text"] == [str(label) for label in batch]
        assert made_batch["both"][0].tolist() == batch
        assert made_batch["both"][1].all()


def test_a_transform_that_raises_names_the_sample(ds: grainstore.Dataset) -> None:
    def transform(sample: dict[str, Any]) -> int:
        if sample["label"] == 49:
            raise ZeroDivisionError("no such thing")
        return int(sample["label"])

    for batch_size in (32, None):
        with pytest.raises(grainstore.TransformFailed, match="sample 49.*ZeroDivisionError: no such thing") as raised:
            list(Loader(ds, batch_size, transform=transform))
        assert raised.value.ordinal == 49
        assert raised.value.key == b"sample/00049\xff"
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        again = pickle.loads(pickle.dumps(raised.value))
        assert (type(again), again.ordinal, again.key) == (grainstore.TransformFailed, 49, b"sample/00049\xff")


def test_a_loader_can_be_used_again_after_a_transform_failed(plain: grainstore.Dataset) -> None:
    broken = True

    def transform(sample: dict[str, Any]) -> int:
        if broken:
            raise ValueError("not yet")
        return int(sample["label"])

    loader = Loader(plain, 100, transform=transform)
    with pytest.raises(grainstore.TransformFailed):
        list(loader)
    broken = False
    assert [batch.tolist() for batch in loader] == labels(Loader(plain, 100))


def test_a_loader_reports_what_it_has_read(plain: grainstore.Dataset) -> None:
    loader = Loader(plain, 100)
    assert loader.stats() == {}
    list(loader)
    stats = loader.stats()
    assert stats["samples"] == 1000
    assert stats["payload_bytes"] == 80 * 1000
    assert stats["skipped_samples"] == 0


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 0},
        {"order": "random"},
        {"tail": "long"},
        {"on_damage": "ignore"},
        {"rank": 3, "world_size": 3},
        {"rank": 0, "world_size": 0},
        {"rank": 0},
        {"world_size": 2},
        {"num_threads": 0},
        {"prefetch": -1},
        {"window_bytes": 0},
        {"lanes": 0},
        {"group": 0},
        {"drop_last": True, "tail": "pad"},
        {"batch_size": None, "collate": list},
    ],
    ids=str,
)
def test_invalid_options_are_reported_at_once(plain: grainstore.Dataset, options: dict[str, Any]) -> None:
    with pytest.raises(grainstore.InvalidOption) as raised:
        Loader(plain, **options)
    assert isinstance(raised.value, ValueError)


def test_who_counts_batches_gets_the_next_epoch_too(ds: grainstore.Dataset) -> None:
    loader = Loader(ds, 50, seed=3)
    counted = [[batch.ordinals.tolist() for _, batch in zip(range(len(loader)), loader)] for _ in range(2)]
    expected = [[batch.ordinals.tolist() for batch in Loader(ds, 50, seed=3, epoch=epoch)] for epoch in range(2)]
    assert counted == expected and counted[0] != counted[1]
    loader.set_epoch(1)
    again = [batch.ordinals.tolist() for _, batch in zip(range(len(loader)), loader)]
    assert again == expected[1]


def test_a_loader_opens_a_path_or_several(tmp_path: Path) -> None:
    made.write_plain(tmp_path / "a.grain", 10)
    made.write_plain(tmp_path / "b.grain", 5)
    for path in (tmp_path / "a.grain", str(tmp_path / "a.grain")):
        assert sorted(label for batch in Loader(path, 4) for label in batch["label"].tolist()) == list(range(10))
    assert len(Loader([tmp_path / "a.grain", tmp_path / "b.grain"], 5)) == 3
    with pytest.raises(grainstore.DatasetNotFound):
        Loader(tmp_path / "none.grain")
    with pytest.raises(TypeError, match="dataset is the result of grainstore.open, or a path, not int"):
        Loader(3)  # type: ignore[arg-type]
