"""The end of an epoch: ranks that have equally many batches or are refused, and never a batch without samples."""

from __future__ import annotations

from itertools import islice, product
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest

import grainstore
from grainstore import InvalidOption, Loader

ORDERS: tuple[Any, ...] = ("full", "chunked", "sequential")


def loaders(dataset: grainstore.Dataset, world_size: int, batch_size: int | None, **options: Any) -> list[Loader]:
    return [Loader(dataset, batch_size, rank=rank, world_size=world_size, **options) for rank in range(world_size)]


def labels_of(item: Any) -> list[int]:
    labels: list[int] = np.atleast_1d(item["label"]).tolist()
    return labels


def collated(samples: list[dict[str, Any]]) -> dict[str, Any]:
    assert samples
    return {"label": np.array([sample["label"] for sample in samples])}


@pytest.mark.parametrize(("order", "world_size"), [*product(ORDERS, range(1, 6))])
def test_every_sample_comes_once_and_no_batch_is_empty(plain: grainstore.Dataset, order: Any, world_size: int) -> None:
    ways: tuple[dict[str, Any], ...] = ({}, {"collate": collated}, {"transform": lambda sample: sample, "num_threads": 2})
    for batch_size in (1, 4, None):
        unit = (batch_size or 1) * world_size
        counts = {1, world_size, *(2 * unit + change for change in (-1, 0, 1, world_size - 1, world_size, world_size + 1))}
        for count in sorted(counts - {0}):
            view, ways_here = plain[:count], ways[: 3 if batch_size == 4 else 1]
            rest = count % unit
            uneven = world_size > 1 and 0 < rest < world_size
            for way in ways_here:
                default = loaders(view, world_size, batch_size, order=order, **way)
                if uneven:
                    for loader in default:
                        with pytest.raises(InvalidOption, match=r"ranks would not.*pad.*drop.*short"):
                            iter(loader)
                short = loaders(view, world_size, batch_size, order=order, tail="short", **way)
                for each in (short,) if uneven else (default, short):
                    found = [list(loader) for loader in each]
                    assert [len(items) for items in found] == [len(loader) for loader in each]
                    assert sorted(label for items in found for item in items for label in labels_of(item)) == [*range(count)]
                    assert all(labels_of(item) for items in found for item in items)
                    lengths = {len(items) for items in found}
                    assert max(lengths) - min(lengths) == uneven
                    assert [(loader.epoch, loader.state_dict()["position"]) for loader in each] == [(1, 0)] * world_size


@pytest.mark.parametrize("order", ORDERS)
def test_a_resumed_epoch_is_refused_by_what_is_left_of_it(plain: grainstore.Dataset, order: Any) -> None:
    first = Loader(plain[:20], 3, order=order)
    seen = [label for batch in islice(first, 4) for label in labels_of(batch)]
    state = first.state_dict()
    # 8 samples are left: enough for 4 ranks with one each, and not for 3 ranks that have had two each.
    for world_size, batch_size, lengths in ((4, 1, [2, 2, 2, 2]), (4, 2, [1, 1, 1, 1]), (3, 2, None), (5, 1, None)):
        found = []
        for loader in loaders(plain[:20], world_size, batch_size, order=order):
            loader.load_state_dict(state)
            if lengths is None:
                with pytest.raises(InvalidOption, match="of the 8 samples"):
                    iter(loader)
            else:
                found.append([label for batch in loader for label in labels_of(batch)])
        assert lengths is None or sorted(seen + sum(found, [])) == [*range(20)]
    found = []
    for loader in loaders(plain[:20], 3, 2, order=order, tail="short"):
        loader.load_state_dict(state)
        found.append([labels_of(batch) for batch in loader])
    assert sorted(len(batches) for batches in found) == [1, 2, 2]
    assert sorted(seen + [label for batches in found for batch in batches for label in batch]) == [*range(20)]


def test_who_counts_batches_of_a_rank_with_one_less_gets_the_next_epoch(plain: grainstore.Dataset) -> None:
    for batch_size, transform in ((4, None), (None, None), (4, dict)):
        for loader in loaders(plain[:25], 3, batch_size, order="full", tail="short", transform=transform)[1:]:
            whole = [labels_of(item) for item in loader]
            loader.set_epoch(0)
            assert [labels_of(item) for item in islice(loader, len(loader))] == whole
            state = loader.state_dict()
            assert state["epoch"] == 0
            assert [labels_of(item) for item in loader] != whole
            assert loader.epoch == 2


def test_a_state_is_of_all_ranks_to_the_last_step_that_all_take(plain: grainstore.Dataset) -> None:
    ranks = loaders(plain[:25], 3, 4, tail="short")
    assert [len(loader) for loader in ranks] == [3, 2, 2]
    seen = [label for loader in ranks for batch in islice(loader, 2) for label in labels_of(batch)]
    states = [loader.state_dict() for loader in ranks]
    assert [state["position"] for state in states] == [24] * 3
    other = Loader(plain[:25], 4)
    other.load_state_dict(states[1])
    assert sorted(seen + [label for batch in other for label in labels_of(batch)]) == [*range(25)]


def test_the_length_is_that_of_one_policy_whatever_the_weights(plain: grainstore.Dataset) -> None:
    for loader in loaders(plain[:10], 3, 2, tail="short", weights=np.ones(10), num_samples=13):
        assert len(list(loader)) == len(loader) == 2 + (loader.rank == 0)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 40 samples, of which 8 to 11 are damaged."""
    path: Path = tmp_path_factory.mktemp("damaged") / "damaged.grain"
    made.write_plain(path, 40)
    segment = next(path.glob("*.seg*"), None) or max(path.iterdir(), key=lambda file: file.stat().st_size)
    content = bytearray(segment.read_bytes())
    for label in range(8, 12):
        place = content.index(made.plain_image(label))
        content[place] ^= 0xFF
    segment.write_bytes(content)
    return path


@pytest.mark.parametrize("way", [{}, {"collate": list}, {"transform": dict}, {"transform": dict, "prefetch": 0}], ids=str)
def test_a_batch_whose_samples_are_all_damaged_is_an_error(damaged: Path, way: dict[str, Any]) -> None:
    dataset = grainstore.open(damaged)
    seen = 0
    with pytest.raises(grainstore.DamagedSample, match="batch 3 of.*epoch 0.*all 4.*damaged.*larger batches") as raised:
        for _ in Loader(dataset, 4, order="sequential", on_damage="skip", **way):
            seen += 1
    assert (seen, raised.value.ordinal) == (2, 8)
    loader = Loader(dataset, 5, order="sequential", on_damage="skip", **way)
    assert len(list(loader)) == len(loader) == 8
    samples = [sample["label"] for sample in Loader(dataset, None, order="sequential", on_damage="skip")]
    assert samples == [label for label in range(40) if not 8 <= label < 12]
