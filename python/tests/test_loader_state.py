"""Saved states of loaders: exact in mid-epoch, whatever the number of ranks, and refused where they do not belong."""

from __future__ import annotations

import json
import pickle
from itertools import islice, product
from pathlib import Path
from typing import Any

import made
import pytest

import grainstore
from grainstore import Loader

Batches = list[list[int]]


def labels_of(batch: Any) -> list[int]:
    return [batch["label"]] if isinstance(batch, dict) else batch["label"].tolist()


def run(loader: Loader, count: int | None = None) -> Batches:
    """What the loader returns, or the first `count` of it: no more is taken."""
    return [labels_of(batch) for batch in islice(loader, count)]


def ranks(dataset: grainstore.Dataset, world_size: int, batch_size: int | None, **options: Any) -> list[Loader]:
    options = {"tail": "short", **options}
    return [Loader(dataset, batch_size, rank=rank, world_size=world_size, **options) for rank in range(world_size)]


def stopped(loaders: list[Loader], count: int) -> tuple[list[int], dict[str, Any]]:
    """What all ranks have seen after `count` batches each, and their one state."""
    seen = [label for loader in loaders for batch in run(loader, count) for label in batch]
    states = [loader.state_dict() for loader in loaders]
    assert all(state == states[0] for state in states)
    # As a checkpoint keeps it.
    return seen, json.loads(json.dumps(states[0]))


def resumed(loaders: list[Loader], state: dict[str, Any]) -> list[int]:
    for loader in loaders:
        loader.load_state_dict(state)
    return [label for loader in loaders for batch in run(loader) for label in batch]


@pytest.mark.parametrize(("order", "before", "after"), [*product(("full", "chunked", "sequential"), (1, 2, 3), (1, 2, 4))])
def test_an_epoch_resumes_exactly_with_the_same_number_of_ranks_or_another(
    plain: grainstore.Dataset, order: Any, before: int, after: int
) -> None:
    options: dict[str, Any] = {"order": order, "seed": 3, "epoch": 2}
    for first_size, count, second_size in ((30, 0, 11), (30, 1, 30), (17, 8, 30), (17, 8, 64)):
        seen, state = stopped(ranks(plain, before, first_size, **options), count)
        assert len(seen) == count * first_size * before
        seen += resumed(ranks(plain, after, second_size, **options), state)
        assert sorted(seen) == list(range(1000))


@pytest.mark.parametrize(("order", "before", "after"), [*product(("full", "chunked", "sequential"), (1, 3), (1, 2))])
def test_single_samples_go_on_exactly_too(plain: grainstore.Dataset, order: Any, before: int, after: int) -> None:
    for count, size in ((0, None), (1, 20), (256, None), (300, None), (300, 20)):
        seen, state = stopped(ranks(plain, before, None, order=order), count)
        assert len(seen) == count * before
        seen += resumed(ranks(plain, after, size, order=order), state)
        assert sorted(seen) == list(range(1000))


def test_a_run_that_is_resumed_sees_what_one_that_was_not_sees(plain: grainstore.Dataset) -> None:
    for batch_size, count in ((37, 5), (37, 0), (37, 27), (37, 28), (None, 1), (None, 256), (None, 777), (None, 1000)):
        loader = Loader(plain, batch_size, seed=8)
        whole = [run(loader) for _ in range(3)]
        loader = Loader(plain, batch_size, seed=8)
        first = run(loader)
        begun = run(loader, count)
        state = loader.state_dict()
        other = Loader(plain, batch_size, seed=8)
        other.load_state_dict(state)
        assert other.state_dict() == state
        rest = run(other)
        assert [first, begun + rest, run(other)] == whole
        assert other.epoch == 3


def test_a_state_counts_what_was_handed_out_not_what_was_read_ahead(plain: grainstore.Dataset) -> None:
    for options in ({}, {"transform": dict, "collate": list, "num_threads": 3, "prefetch": 6}):
        loader = Loader(plain, 10, **options)  # type: ignore[arg-type]
        batches = iter(loader)
        for count in range(1, 20):
            next(batches)
            assert loader.state_dict()["position"] == 10 * count


def test_a_state_that_was_loaded_is_for_one_pass(plain: grainstore.Dataset) -> None:
    loader = Loader(plain, 100, seed=4)
    whole = run(loader)
    loader.set_epoch(0)
    run(loader, 3)
    state = loader.state_dict()
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    assert run(loader) == whole[3:]
    loader.load_state_dict(state)
    loader.set_epoch(0)
    assert run(loader) == whole[3:]
    loader.load_state_dict(state)
    loader.set_epoch(1)
    assert len(run(loader)) == 10


def test_a_group_is_part_of_the_order_and_of_its_state(plain: grainstore.Dataset) -> None:
    def loader(**options: Any) -> Loader:
        return Loader(plain, 100, order="chunked", lanes=4, **options)

    whole = run(loader(group=3))
    assert sorted(sum(whole, [])) == list(range(1000))
    assert run(loader(group=1)) == run(loader())
    _, state = stopped([loader(group=3)], 3)
    assert (state["lanes"], state["group"], state["mixture"]) == (4, 3, None)
    # The group of the state is used where none is given.
    for group in (3, None):
        again = loader(group=group)
        again.load_state_dict(state)
        assert run(again) == whole[3:]
    with pytest.raises(grainstore.InvalidState):
        loader(group=2).load_state_dict(state)
    with pytest.raises(grainstore.InvalidState, match="newer"):
        loader().load_state_dict(state | {"mixture": [1, 2]})
    del state["group"], state["mixture"]
    with pytest.raises(grainstore.InvalidState, match="development version"):
        loader().load_state_dict(state)


def test_a_state_at_the_end_of_an_epoch_is_the_start_of_the_next(plain: grainstore.Dataset) -> None:
    loader = Loader(plain, 100, seed=4)
    run(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    other = Loader(plain, 100, seed=4)
    other.load_state_dict(state)
    assert run(other) == run(loader)


def test_a_pickled_loader_resumes_from_its_position(plain: grainstore.Dataset) -> None:
    loader = Loader(plain, 100, seed=4)
    batches = iter(loader)
    seen = [labels_of(next(batches)) for _ in range(3)]
    other = pickle.loads(pickle.dumps(loader))
    assert seen + run(other) == run(Loader(plain, 100, seed=4))
    assert len([labels_of(batch) for batch in batches]) == 7


def test_a_rank_with_one_sample_more_than_others_is_at_the_end(plain: grainstore.Dataset) -> None:
    loader = Loader(plain, None, rank=0, world_size=3, tail="short")
    assert len(run(loader, 334)) == len(loader) == 334
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (0, 1000)
    assert resumed(ranks(plain, 2, 10), state) == []


def test_a_state_that_was_refused_changes_nothing(plain: grainstore.Dataset) -> None:
    loader = Loader(plain, 100, epoch=2)
    begun = run(loader, 3)
    state = loader.state_dict()
    with pytest.raises(grainstore.InvalidState):
        loader.load_state_dict(state | {"epoch": 5, "seed": 1})
    assert (loader.epoch, loader.state_dict()) == (2, state)
    assert begun == run(loader, 3)


def test_views_have_states_of_their_own(plain: grainstore.Dataset) -> None:
    view = plain.filter("label < 500")
    seen, state = stopped(ranks(view, 2, 20), 5)
    assert sorted(seen + resumed(ranks(view, 1, 30), state)) == list(range(500))
    with pytest.raises(grainstore.InvalidState):
        Loader(plain, 20).load_state_dict(state)
    with pytest.raises(grainstore.InvalidState):
        Loader(plain.filter("label < 501"), 20).load_state_dict(state)


def test_a_state_of_something_else_is_refused(plain: grainstore.Dataset, tmp_path: Path) -> None:
    _, state = stopped([Loader(plain, 10)], 3)
    made.write_plain(tmp_path / "other.grain", 999)
    with grainstore.open(tmp_path / "other.grain") as other, pytest.raises(grainstore.InvalidState):
        Loader(other, 10).load_state_dict(state)
    for options in ({"seed": 1}, {"order": "full"}, {"lanes": 7}, {"group": 7}):
        loader = Loader(plain, 10, **options)
        with pytest.raises(grainstore.InvalidState):
            loader.load_state_dict(state)
        assert sorted(sum(run(loader), [])) == list(range(1000))


@pytest.mark.parametrize("change", [
    {"epoch": "0"}, {"epoch": None}, {"epoch": 1.0}, {"position": -1}, {"position": "a"}, {"position": 1.5}, {"seed": 1},
    {"seed": None}, {"more": 1}, {"fingerprint": "0" * 16}, {"fingerprint": 3}, {"grainstore_state": 99},
    {"subset": "x"}, {"order": "random"}, {"lanes": -1}, {"position": object()}, {"position": float("nan")},
], ids=str)
def test_garbage_is_no_state(plain: grainstore.Dataset, change: dict[str, Any]) -> None:
    loader = Loader(plain, 10)
    _, state = stopped([loader], 3)
    with pytest.raises(grainstore.InvalidState) as raised:
        loader.load_state_dict(state | change)
    assert isinstance(raised.value, ValueError)
    for name in state:
        with pytest.raises(grainstore.InvalidState):
            loader.load_state_dict({other: value for other, value in state.items() if other != name})
    assert loader.epoch == 0


@pytest.mark.parametrize("state", [None, "state", 3, [], {}, {1: 2}, {"epoch": 0}], ids=str)
def test_what_is_no_dictionary_of_a_loader_is_no_state(plain: grainstore.Dataset, state: Any) -> None:
    with pytest.raises(grainstore.InvalidState, match="state"):
        Loader(plain, 10).load_state_dict(state)


def test_a_state_of_before_an_append_names_the_generation_that_resumes_it(tmp_path: Path) -> None:
    made.write_plain(tmp_path / "d.grain", 40)
    made.write_plain(tmp_path / "more.grain", 10)
    loader = Loader(grainstore.open(tmp_path / "d.grain"), 8, seed=1)
    seen = [label for batch in run(loader, 2) for label in batch]
    state = loader.state_dict()
    grainstore.append(tmp_path / "more.grain", tmp_path / "d.grain")
    remedy = r"generation 0 of the dataset, generation 1 is open; .*grainstore.open\(path, generation=0\) resumes it"
    with pytest.raises(grainstore.InvalidState, match=remedy):
        Loader(grainstore.open(tmp_path / "d.grain"), 8, seed=1).load_state_dict(state)
    again = Loader(grainstore.open(tmp_path / "d.grain", generation=0), 8, seed=1)
    assert sorted(seen + resumed([again], state)) == list(range(40))


def test_a_dictionary_that_is_no_state_of_a_loader_is_refused_by_what_it_is(plain: grainstore.Dataset) -> None:
    loader = Loader(plain, 8)
    of_torch = {"num_workers": 0, "world_size": 1, "batch_size": 8, "loader": loader.state_dict()}
    for state in (of_torch, {"_snapshot": {}}, {"_num_yielded": 3}):
        with pytest.raises(grainstore.InvalidState, match="the state of a grainstore.torch.IterableDataset or of a Stateful"):
            loader.load_state_dict(state)
    with pytest.raises(grainstore.InvalidState, match="this dictionary is none: it has model, optimizer"):
        loader.load_state_dict({"model": 1, "optimizer": 2})
