"""An epoch of grainstore.torch that is left in the middle, and resumed."""

import copy
import pickle

import pytest
import torch
from torch.utils.data import DataLoader
from torch_support import COUNT, labels_of, read, write
from torchdata.stateful_dataloader import StatefulDataLoader

import grainstore
from grainstore.torch import IterableDataset

pytestmark = [
    pytest.mark.filterwarnings("error"),
    # torch's advice on how many workers this machine is good for.
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    # torchdata calls what torch has deprecated.
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("torch") / "train.grain")


def make(path, batch_size, workers, **options):
    """A stateful loader of batches of seven, which the dataset makes or the loader."""
    iterable = IterableDataset(path, batch_size, seed=11, **{"order": "full", **options})
    loader_batch_size = 7 if batch_size is None else None
    return iterable, StatefulDataLoader(iterable, batch_size=loader_batch_size, num_workers=workers)


def through_a_file(state, tmp_path):
    torch.save(state, tmp_path / "state.pt")
    return torch.load(tmp_path / "state.pt")


@pytest.mark.parametrize("batch_size", [None, 7])
@pytest.mark.parametrize(("workers", "cuts"), [(0, [0, 1, 8, 14, 15]), (2, [0, 3, 8, 15])])
def test_a_stateful_loader_resumes_with_the_very_next_batch(path, tmp_path, batch_size, workers, cuts):
    iterable, whole = make(path, batch_size, workers)
    iterable.set_epoch(3)
    expected = [batch["label"].tolist() for batch in whole]
    assert sorted(label for batch in expected for label in batch) == list(range(COUNT))
    for cut in cuts:
        iterable, loader = make(path, batch_size, workers)
        iterable.set_epoch(3)
        iterator = iter(loader)
        before = [next(iterator)["label"].tolist() for _ in range(cut)]
        state = through_a_file(loader.state_dict(), tmp_path)
        del iterator, loader
        iterable, loader = make(path, batch_size, workers)
        loader.load_state_dict(state)
        after = [batch["label"].tolist() for batch in loader]
        assert before + after == expected, cut
        # And the next epoch is whole.
        iterable.set_epoch(4)
        following = labels_of(loader)
        assert sorted(following) == list(range(COUNT))
        assert following != [label for batch in expected for label in batch]


@pytest.mark.parametrize("order", ["chunked", "sequential"])
def test_workers_that_stand_at_different_batches_go_on_in_every_order(path, order):
    for rank in range(2):
        options = {"order": order, "rank": rank, "world_size": 2, "tail": "short"}
        expected = [batch["label"].tolist() for batch in make(path, 7, 3, **options)[1]]
        _, loader = make(path, 7, 3, **options)
        iterator = iter(loader)
        before = [next(iterator)["label"].tolist() for _ in range(4)]
        state = loader.state_dict()
        del iterator, loader
        _, loader = make(path, 7, 3, **options)
        loader.load_state_dict(state)
        assert before + [batch["label"].tolist() for batch in loader] == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_of_the_end_of_an_epoch_resumes_with_the_next(path, workers):
    iterable, loader = make(path, 7, workers)
    iterable.set_epoch(3)
    list(loader)
    state = loader.state_dict()
    iterable.set_epoch(4)
    expected = labels_of(loader)
    iterable, loader = make(path, 7, workers)
    loader.load_state_dict(state)
    iterable.set_epoch(4)
    assert labels_of(loader) == expected


@pytest.mark.parametrize("batch_size", [None, 7])
def test_without_workers_the_datasets_own_state_is_enough(path, batch_size):
    def fresh():
        iterable = IterableDataset(path, batch_size, order="full", seed=2)
        return iterable, DataLoader(iterable, batch_size=7 if batch_size is None else None)

    iterable, loader = fresh()
    epochs = [[batch["label"].tolist() for batch in loader] for _ in range(2)]
    for cut in (0, 4, 14, 15):
        iterable, loader = fresh()
        iterator = iter(loader)
        before = [next(iterator)["label"].tolist() for _ in range(cut)]
        state = pickle.loads(pickle.dumps(iterable.state_dict()))
        iterable, loader = fresh()
        iterable.load_state_dict(state)
        assert iterable.state_dict() == state
        # The last sample is handed out with the last batch, and the batch's end found then, too, where torch collates.
        if batch_size is None and cut == 15:
            assert iterable.epoch == 1
        else:
            assert before + [batch["label"].tolist() for batch in loader] == epochs[0], cut
        assert iterable.epoch == 1
        assert [batch["label"].tolist() for batch in loader] == epochs[1]


def test_transforms_ahead_of_the_loop_do_not_count(path):
    iterable = IterableDataset(path, 7, order="full", transform=lambda sample: {"label": sample["label"]}, num_threads=3)
    iterator = iter(iterable)
    before = labels_of([next(iterator), next(iterator)])
    state = iterable.state_dict()
    again = IterableDataset(path, 7, order="full")
    again.load_state_dict(state)
    assert sorted(before + labels_of(again)) == list(range(COUNT))


def test_a_pass_may_go_on_as_a_copy_and_with_other_ranks(path):
    iterable = IterableDataset(path, 7, order="full")
    iterator = iter(iterable)
    before = labels_of([next(iterator), next(iterator)])
    for again in (pickle.loads(pickle.dumps(iterable)), copy.deepcopy(iterable)):
        assert sorted(before + labels_of(again)) == list(range(COUNT))
    after = []
    for rank in range(3):
        share = IterableDataset(path, 5, order="full", rank=rank, world_size=3, tail="short")
        share.load_state_dict(iterable.state_dict())
        after += labels_of(share)
    assert sorted(before + after) == list(range(COUNT))


def test_set_epoch_to_another_epoch_lets_the_state_go(path):
    iterable = IterableDataset(path, 7, order="full")
    next(iter(iterable))
    state = iterable.state_dict()
    iterable.load_state_dict(state)
    iterable.set_epoch(0)
    assert len(labels_of(iterable)) == COUNT - 7
    iterable.load_state_dict(state)
    with pytest.warns(UserWarning, match="state of epoch 0 that was loaded is not used"):
        iterable.set_epoch(1)
    assert len(labels_of(iterable)) == COUNT


@pytest.mark.parametrize(("saved", "loaded"), [(2, 1), (1, 2), (2, 3)])
def test_a_state_of_another_number_of_workers_is_refused(path, saved, loaded):
    _, loader = make(path, 7, saved)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    del iterator, loader
    _, loader = make(path, 7, loaded)
    loader.load_state_dict(state)
    with pytest.raises(grainstore.InvalidState, match=f"state is of num_workers={saved}, .* num_workers={loaded}"):
        read(loader)


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_resume_from_a_state_of_the_process_itself(path, workers):
    iterable = IterableDataset(path, 7, seed=5)
    iterator = iter(iterable)
    before = labels_of([next(iterator), next(iterator)])
    state = iterable.state_dict()
    for again in (iterable, IterableDataset(path, 4, seed=5)):
        again.load_state_dict(state)
        after = labels_of(DataLoader(again, batch_size=None, num_workers=workers))
        assert sorted(before + after) == list(range(COUNT))
        # The state was used: no warning, which would be an error here.
        again.set_epoch(1)
    with pytest.raises(TypeError, match="epoch is an integer"):
        iterable.set_epoch(1.5)


@pytest.mark.parametrize(("saved", "loaded"), [(2, 0), (2, 3), (1, 2)])
def test_the_dataset_resumes_from_a_loaders_state_with_other_workers_ranks_and_batches(path, tmp_path, saved, loaded):
    # Two ranks, each after as many batches as it has workers.
    before, states = [], []
    for rank in range(2):
        _, loader = make(path, 7, saved, rank=rank, world_size=2)
        iterator = iter(loader)
        before += labels_of([next(iterator) for _ in range(2 * saved)])
        states.append(through_a_file(loader.state_dict(), tmp_path))
        del iterator, loader
    after = []
    for rank in range(3):
        iterable, loader = make(path, 4, loaded, rank=rank, world_size=3, tail="short")
        # Any rank's state is that of all.
        iterable.load_state_dict(states[rank % 2])
        after += labels_of(loader)
    assert sorted(before + after) == list(range(COUNT))


def test_a_loaders_state_of_workers_at_different_batches_is_only_that_loaders(path):
    _, loader = make(path, 7, 2)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    # One worker's part of it is not a state either.
    worker = state["_snapshot"]["_worker_snapshots"]["worker_0"]["dataset_state"]
    del iterator, loader
    iterable, _ = make(path, 7, 2)
    with pytest.raises(grainstore.InvalidState, match="2 workers had not returned equally many batches"):
        iterable.load_state_dict(state)
    with pytest.raises(grainstore.InvalidState, match="state of one of 2 workers"):
        iterable.load_state_dict(worker)


def test_where_workers_read_the_dataset_has_no_state_of_its_own(path):
    iterable = IterableDataset(path, 7, seed=5)
    loader = DataLoader(iterable, batch_size=None, num_workers=2)
    at_first = iterable.state_dict()
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(grainstore.InvalidState, match="workers read epoch 0, .*StatefulDataLoader"):
        iterable.state_dict()
    list(iterator)
    with pytest.raises(grainstore.InvalidState, match="between epochs, call set_epoch"):
        iterable.state_dict()
    iterable.set_epoch(1)
    assert iterable.state_dict()["loader"]["epoch"] == 1
    # The state from before anything was read suits any number of workers.
    for workers in (0, 2):
        iterable.load_state_dict(at_first)
        assert sorted(labels_of(DataLoader(iterable, batch_size=None, num_workers=workers))) == list(range(COUNT))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loop_may_count_the_samples_itself(path, workers):
    iterable = IterableDataset(path, 7, seed=5)
    loader = DataLoader(iterable, batch_size=None, num_workers=workers)
    seen, iterator = [], iter(loader)
    for count in (4, 4):
        seen += labels_of([next(iterator) for _ in range(count)])
        state = iterable.state_dict(len(seen), True)
        again = IterableDataset(path, 5, seed=5)
        again.load_state_dict(state)
        assert sorted(seen + labels_of(again)) == list(range(COUNT))
    del iterator
    # A pass that did not begin at the epoch's beginning.
    iterable.load_state_dict(state)
    iterator = iter(loader)
    after = labels_of([next(iterator) for _ in range(2)])
    for number in ((len(after), False), (len(seen + after), True)):
        again.load_state_dict(iterable.state_dict(*number))
        assert sorted(seen + after + labels_of(again)) == list(range(COUNT))
    if workers:
        with pytest.raises(grainstore.InvalidState, match="63 samples of epoch 0 are no state, .* multiple of 2 batches"):
            iterable.state_dict(63)
        with pytest.raises(grainstore.InvalidState, match="7 samples are fewer than the 56 before this pass"):
            iterable.state_dict(7)
    list(iterator)
    if not workers:
        assert iterable.state_dict(0)["loader"] == {**state["loader"], "epoch": 1, "position": 0}


def test_workers_refuse_a_state_of_another_batch_size_or_number_of_ranks(path):
    _, loader = make(path, 7, 2, rank=0, world_size=2, tail="short")
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    del iterator, loader
    for name, batch_size, world_size in (("batch_size", 5, 2), ("world_size", 7, 1)):
        _, loader = make(path, batch_size, 2, rank=0, world_size=world_size, tail="short")
        loader.load_state_dict(state)
        with pytest.raises(grainstore.InvalidState, match=f"state is of {name}="):
            read(loader)


def test_a_state_of_something_else_is_refused(path, tmp_path):
    iterable = IterableDataset(path, 7, order="full", seed=1)
    state = iterable.state_dict()
    other = IterableDataset(write(tmp_path / "other.grain", 50), 7, order="full", seed=1).state_dict()
    seeded = IterableDataset(path, 7, order="full", seed=2).state_dict()
    for wrong in (other, seeded, None, {}, {"loader": 3}, {**state, "loader": {}}, {"loader": {"epoch": 1}}):
        with pytest.raises(grainstore.InvalidState):
            iterable.load_state_dict(wrong)
    assert sorted(labels_of(iterable)) == list(range(COUNT))


def test_the_state_of_a_loader_is_refused_by_name(tmp_path):
    dataset = grainstore.open(write(tmp_path / "d.grain"))
    with pytest.raises(grainstore.InvalidState, match="this is the state of a grainstore.Loader, which resumes it"):
        IterableDataset(dataset, 8).load_state_dict(grainstore.Loader(dataset, 8).state_dict())
