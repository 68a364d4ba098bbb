"""grainstore.torch.IterableDataset with torch's own DataLoader: epochs in grainstore's order."""

import re
import sys
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torch_support import COUNT, labels_of, read, write

import grainstore
from grainstore.torch import IterableDataset, MapDataset

pytestmark = [
    pytest.mark.filterwarnings("error"),
    # torch's advice on how many workers this machine is good for.
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("torch") / "train.grain")


@pytest.fixture
def dataset(path):
    with grainstore.open(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """Three samples, of which the second has no age and the third no vector."""
    path = tmp_path_factory.mktemp("torch") / "gaps.grain"
    with grainstore.Writer(path, schema={"image": "bytes", "vector": "float32[2]", "age": "int32"}, keyed=False) as writer:
        writer.write(image=b"a", vector=np.zeros(2, np.float32), age=7)
        writer.write(image=b"b", vector=np.zeros(2, np.float32), age=None)
        writer.write(image=b"c", vector=None, age=9)
    return path


def label_only(sample):
    return {"label": sample["label"]}


# Every sample once


@pytest.mark.parametrize("order", ["chunked", "full", "sequential"])
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [None, 7])
def test_ranks_and_workers_share_an_epoch(dataset, order, workers, batch_size):
    seen = []
    for rank in range(2):
        iterable = IterableDataset(dataset, batch_size, order=order, seed=3, rank=rank, world_size=2, tail="short")
        loader = DataLoader(iterable, batch_size=7 if batch_size is None else None, num_workers=workers)
        seen += labels_of(loader)
    assert sorted(seen) == list(range(COUNT))


def test_workers_of_a_forkserver_read_an_epoch(dataset):
    context = torch.multiprocessing.get_context("forkserver")
    # So that its workers need not.
    context.set_forkserver_preload(["torch", "grainstore.torch"])
    iterable = IterableDataset(dataset, 10, transform=label_only)
    loader = DataLoader(iterable, batch_size=None, num_workers=2, multiprocessing_context=context)
    assert sorted(labels_of(loader)) == list(range(COUNT))


def test_a_worker_reads_as_a_rank_of_all_ranks_workers(dataset):
    iterable = IterableDataset(dataset, 5, order="full", seed=9, rank=1, world_size=2, tail="short")
    found = labels_of(DataLoader(iterable, batch_size=None, num_workers=2))
    shares = []
    for worker in range(2):
        loader = grainstore.Loader(dataset, 5, order="full", seed=9, rank=1 + 2 * worker, world_size=4, tail="short")
        shares.append([batch["label"].tolist() for batch in loader])
    # DataLoader takes a batch of each worker in turn.
    assert found == [label for pair in zip(*shares, strict=True) for batch in pair for label in batch]


@pytest.mark.parametrize("workers", [0, 2])
def test_drop_leaves_out_and_pad_repeats_so_that_ranks_have_the_same_number(dataset, workers):
    for batch_size in (None, 8):
        for options in ({"tail": "drop"} if batch_size else {"drop_last": True}, {"tail": "pad"}):
            counts, seen = [], []
            for rank in range(2):
                iterable = IterableDataset(dataset, batch_size, rank=rank, world_size=2, **options)
                batches = list(DataLoader(iterable, batch_size=8 if batch_size is None else None, num_workers=workers))
                counts.append([len(batch["label"]) for batch in batches])
                seen += labels_of(batches)
                assert len(iterable) == (len(batches) if batch_size else sum(counts[-1]))
            assert counts[0] == counts[1]
            assert set(seen) == set(range(COUNT)) if options == {"tail": "pad"} else len(set(seen)) == len(seen) > 70


def test_ranks_with_unequally_many_batches_are_refused_unless_asked_for(dataset):
    # 101 samples: the last batch of three ranks has one sample for the first two, and none for the third.
    for view, batch_size in ((dataset, None), (dataset, 9 * 11)):
        view = view if batch_size is None else view.select(range(2 * 33 + 1))
        batch_size = batch_size and 11
        for rank in range(2):
            options = {"batch_size": batch_size, "rank": rank, "world_size": 2}
            with pytest.raises(grainstore.InvalidOption, match="2 ranks would not have equally many (batches|samples).*'pad'"):
                next(iter(IterableDataset(view, **options)))
        sizes = [len(list(IterableDataset(view, batch_size, rank=rank, world_size=2, tail="short"))) for rank in range(2)]
        assert sizes == ([51, 50] if batch_size is None else [4, 3])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_whose_samples_are_all_damaged_is_an_error(tmp_path, workers):
    path = write(tmp_path / "damaged.grain", 20)
    segment = max(path.iterdir(), key=lambda file: file.stat().st_size)
    content = bytearray(segment.read_bytes())
    for number in (4, 5, 6, 7):
        content[content.index(b"%d" % number * 50)] ^= 0xFF
    segment.write_bytes(content)
    iterable = IterableDataset(path, 4, order="sequential", on_damage="skip")
    if not workers:
        with pytest.raises(grainstore.DamagedSample, match="batch 2 of.*has no sample left: all 4 were skipped"):
            read(DataLoader(iterable, batch_size=None))
    whole = IterableDataset(path, 5, order="sequential", on_damage="skip")
    assert len(labels_of(DataLoader(whole, batch_size=None, num_workers=workers))) == 16


@pytest.mark.parametrize("world_size", range(1, 6))
def test_every_sample_comes_once_or_the_epoch_is_refused(dataset, world_size):
    for batch_size in (1, 4):
        for count in (world_size, *(2 * batch_size * world_size + more for more in (-1, 0, 1, world_size))):
            seen, lengths = [], []
            uneven = 0 < count % (batch_size * world_size) < world_size
            for rank in range(world_size):
                ranks = {"rank": rank, "world_size": world_size}
                if uneven:
                    with pytest.raises(grainstore.InvalidOption, match="ranks would not"):
                        iter(IterableDataset(dataset[:count], batch_size, **ranks))
                iterable = IterableDataset(dataset[:count], batch_size, tail="short" if uneven else None, **ranks)
                batches = list(iterable)
                assert len(batches) == len(iterable) and all(len(batch["label"]) for batch in batches)
                lengths.append(len(batches))
                seen += labels_of(batches)
            assert sorted(seen) == list(range(count)) and max(lengths) - min(lengths) == uneven


@pytest.mark.parametrize("order", ["full", "sequential"])
@pytest.mark.parametrize("workers", [2, 5])
def test_batches_are_as_many_and_as_full_whatever_the_workers(dataset, order, workers):
    for count, world_size in ((13, 1), (26, 2), (63, 2)):
        view = dataset.select(range(count))
        seen = []
        for rank in range(world_size):
            iterable = IterableDataset(view, 4, order=order, rank=rank, world_size=world_size)
            alone = [len(batch["label"]) for batch in DataLoader(iterable, batch_size=None)]
            # With the length asked for first, torch warns where there are more batches.
            batches = list(DataLoader(iterable, batch_size=None, num_workers=workers))
            assert sorted(len(batch["label"]) for batch in batches) == sorted(alone)
            assert len(alone) == len(iterable) == -(-count // (4 * world_size))
            seen += labels_of(batches)
        assert sorted(seen) == list(range(count))


def test_options_that_cannot_be_are_refused_at_once(dataset):
    for options in (
        {"batch_size": 0},
        {"batch_size": 4, "rank": 2, "world_size": 2},
        {"rank": 0},
        {"order": "random"},
        {"drop_last": True, "tail": "pad"},
        {"collate": list},
        {"num_threads": 0},
    ):
        with pytest.raises(grainstore.InvalidOption):
            IterableDataset(dataset, **options)


@pytest.mark.parametrize(("workers", "tail"), [(2, "short"), (3, "short"), (2, "pad"), (3, "drop")])
def test_workers_transform_every_sample_once(dataset, workers, tail):
    # Counters per worker: processes do not add to one number safely.
    counts = torch.zeros(workers, dtype=torch.int64).share_memory_()

    def counted(sample):
        counts[torch.utils.data.get_worker_info().id] += 1
        return label_only(sample)

    for count in (101, 3):
        counts.zero_()
        iterable = IterableDataset(dataset.select(range(count)), 8, transform=counted, tail=tail)
        seen = labels_of(DataLoader(iterable, batch_size=None, num_workers=workers))
        assert int(counts.sum()) == len(seen)


def test_the_last_batch_is_transformed_after_all_others(dataset):
    # With threads, a transform of a batch that nobody takes would run beside the last one's.
    made = []

    def noted(sample):
        made.append(sample["label"])
        return label_only(sample)

    class Worker:
        id, num_workers = 0, 2

    iterable = IterableDataset(dataset, 8, order="sequential", transform=noted, num_threads=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.utils.data, "get_worker_info", lambda: Worker)
        seen = [batch["label"].tolist() for batch in iterable]
    # Of 101 samples, 96 make full batches of two workers, and the other 5 the first worker's last one.
    assert sorted(made) == sorted(label for batch in seen for label in batch)
    assert set(made[-5:]) == set(seen[-1]) == set(range(96, 101))


def test_batches_of_batches_are_refused(dataset):
    for workers in (0, 1):
        for options in ({}, {"batch_size": 64}):
            with pytest.raises(grainstore.InvalidOption, match="batches of 64 .*DataLoader\\(dataset, batch_size=None\\)"):
                read(DataLoader(IterableDataset(dataset, 64), num_workers=workers, **options))
    # A wrapper may take the batches apart.
    wrapped = torch.utils.data.ChainDataset([IterableDataset(dataset, 64, collate=len)])
    assert [*DataLoader(wrapped, batch_size=2)][0].tolist() == [64, 37]


# What a batch is


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_has_tensors_of_the_datasets_types(dataset, workers):
    iterable = IterableDataset(dataset, 4, order="sequential")
    batch = next(iter(DataLoader(iterable, batch_size=None, num_workers=workers)))
    assert batch["label"].dtype == torch.int64 and batch["label"].tolist() == [0, 1, 2, 3]
    assert batch["width"].dtype == torch.uint8 and batch["width"].tolist() == [0, 1, 2, 3]
    assert batch["flip"].dtype == torch.bool and batch["flip"].tolist() == [True, False, True, False]
    assert batch["vector"].dtype == torch.float32 and batch["vector"].shape == (4, 3)
    assert batch["image"] == [b"%d" % number * 50 for number in range(4)]
    assert batch["caption"] == [f"sample {number}" for number in range(4)]
    batch["label"] += 1
    assert dataset[0]["label"] == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_a_view_of_some_columns_has_these_in_both_datasets(dataset, workers):
    view = dataset.select_columns(["vector", "label"])
    for data, options in [
        (IterableDataset(view, 20), {"batch_size": None}),
        (IterableDataset(view), {"batch_size": 20}),
        (MapDataset(view), {"batch_size": 20}),
        (MapDataset(view, transform=lambda sample: sample), {"batch_size": 20}),
    ]:
        batches = list(DataLoader(data, num_workers=workers, **options))
        assert all(list(batch) == ["vector", "label"] for batch in batches)
        assert sorted(labels_of(batches)) == list(range(COUNT))
        assert all((batch["vector"][:, 0] == batch["label"]).all() for batch in batches)


def test_what_a_transform_makes_is_collated_as_torch_does_by_default(dataset):
    iterable = IterableDataset(dataset, 3, order="sequential", transform=lambda s: (torch.tensor(s["vector"]), s["label"]))
    vectors, labels = next(iter(iterable))
    assert vectors.tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]] and labels.dtype == torch.int64
    iterable = IterableDataset(dataset, 3, order="sequential", collate=lambda samples: [s["caption"] for s in samples])
    assert next(iter(iterable)) == ["sample 0", "sample 1", "sample 2"]
    iterable = IterableDataset(dataset, 3, order="sequential", transform=label_only, collate=len)
    assert [*iterable][-2:] == [3, 2]


def test_a_missing_bool_is_filled_with_neither_of_its_values(tmp_path):
    with grainstore.Writer(tmp_path / "d.grain", {"data": "bytes", "flip": "bool"}, keyed=False) as writer:
        for flip in (True, None, False):
            writer.write(data=b"x", flip=flip)
    with grainstore.open(tmp_path / "d.grain") as dataset:
        with pytest.raises(grainstore.InvalidOption) as caught:
            list(IterableDataset(dataset, 3))
        transform = eval(re.search("lambda sample: .*?}", str(caught.value))[0])
        (batch,) = IterableDataset(dataset, 3, order="sequential", transform=transform)
    assert (batch["flip"].dtype, batch["flip"].tolist()) == (torch.int64, [1, -1, 0])


def test_a_missing_number_is_never_in_a_tensor(gaps):
    with grainstore.open(gaps) as dataset:
        for place, name in ((1, "age"), (2, "vector")):
            with pytest.raises(grainstore.InvalidOption, match=f'sample {place} has no value of "{name}"') as caught:
                list(IterableDataset(dataset.select([0, place]), 2))
            assert caught.value.ordinal == place
        # What the message names: for numbers a filter and -1, for arrays a selection and an array.
        for place, name, hints in ((1, "age", ('dataset.filter("age is present")', "-1 if")), (2, "vector", ("dataset.select([", "np.zeros("))):
            with pytest.raises(grainstore.InvalidOption) as caught:
                next(iter(IterableDataset(dataset.select([place]), 1)))
            assert all(hint in str(caught.value) for hint in hints)
            some = eval(str(caught.value).rpartition("that have one, ")[2], {"dataset": dataset})
            assert len(some) == 2 and place not in some.ordinals
            fill = eval(str(caught.value).partition("such as ")[2].rpartition(", or read")[0], {"np": np})
            other = "age" if name == "vector" else "vector"
            several = IterableDataset(dataset, 3, transform=lambda sample: {name: fill(sample)[name]})
            assert name in next(iter(several)) and other not in next(iter(several))
        present = IterableDataset(dataset.filter("age is present")[:1], 2)
        assert next(iter(present))["age"].tolist() == [7]
        filled = IterableDataset(dataset, 3, order="sequential", transform=lambda s: -1 if s["age"] is None else s["age"])
        assert next(iter(filled)).tolist() == [7, -1, 9]
        # Sample by sample it is None, which torch refuses to collate.
        assert next(iter(IterableDataset(dataset.select([1]))))["age"] is None
        with pytest.raises(grainstore.InvalidOption, match='a sample has no value of "age", and PyTorch cannot collate None'):
            list(DataLoader(IterableDataset(dataset), batch_size=3))
        with pytest.raises(grainstore.InvalidOption, match='sample 1 has no value of "age", and PyTorch cannot collate None'):
            list(DataLoader(MapDataset(dataset), batch_size=3))


@pytest.mark.parametrize("workers", [0, 2])
def test_pinned_memory_may_be_asked_for_on_any_machine(dataset, workers):
    iterable = IterableDataset(dataset, 10)
    with pytest.warns(UserWarning, match="pin_memory") if not torch.cuda.is_available() else pytest.MonkeyPatch.context():
        seen = labels_of(DataLoader(iterable, batch_size=None, num_workers=workers, pin_memory=True))
    assert sorted(seen) == list(range(COUNT))


# Epochs


def test_without_workers_each_epoch_has_another_order_and_a_seed_repeats_them(dataset):
    first, second = (IterableDataset(dataset, order="full", seed=5) for _ in range(2))
    orders = [[sample["label"] for sample in first] for _ in range(3)]
    assert len({tuple(order) for order in orders}) == 3 and first.epoch == 3
    second.set_epoch(2)
    assert [sample["label"] for sample in second] == orders[2]
    first.set_epoch(0)
    assert next(iter(first))["label"] == orders[0][0]
    # A pass that was broken off begins again.
    assert next(iter(first))["label"] == orders[0][0]


@pytest.mark.parametrize("batch_size", [None, 10])
def test_a_loop_that_counts_batches_gets_the_next_epoch_too(dataset, batch_size):
    iterable = IterableDataset(dataset, batch_size, order="full")
    expected = [labels_of(DataLoader(iterable, batch_size=None if batch_size else 10)) for _ in range(2)]
    iterable.set_epoch(0)
    loader = DataLoader(iterable, batch_size=None if batch_size else 10)
    for labels in expected:
        iterator = iter(loader)
        assert labels_of([next(iterator) for _ in range(len(loader))]) == labels
    # The same epoch once more, where that is asked for.
    iterable.set_epoch(1)
    assert labels_of(loader) == expected[1]


@pytest.mark.parametrize(
    ("start_method", "persistent", "workers"), [("fork", False, 2), ("fork", True, 2), ("spawn", True, 1)]
)
def test_set_epoch_reaches_workers_persistent_ones_too(dataset, start_method, persistent, workers):
    numbers = (4, 5, 9)
    expected = IterableDataset(dataset, 10, order="full")
    expected = [labels_of(DataLoader(at_epoch(expected, e), batch_size=None, num_workers=workers)) for e in numbers]
    iterable = IterableDataset(dataset, 10, order="full")
    loader = DataLoader(
        iterable,
        batch_size=None,
        num_workers=workers,
        persistent_workers=persistent,
        multiprocessing_context=start_method,
    )
    orders = [labels_of(at_epoch_of(loader, epoch)) for epoch in numbers]
    assert orders == expected
    assert len({tuple(order) for order in orders}) == 3
    del loader


def at_epoch_of(loader, epoch):
    loader.dataset.set_epoch(epoch)
    return loader


def at_epoch(iterable, epoch):
    iterable.set_epoch(epoch)
    return iterable


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_warn_once_where_an_epoch_is_read_again_for_want_of_set_epoch(dataset, persistent, capfd, monkeypatch):
    iterable = IterableDataset(dataset, 10, order="full")
    loader = DataLoader(iterable, batch_size=None, num_workers=2, persistent_workers=persistent)
    fixed = IterableDataset(dataset, 10, order="sequential")
    warned = []
    # pytest would keep what workers warn of to itself, in the worker.
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_: print(message, file=sys.stderr, flush=True))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for epoch in (None, 1, None, None):
            if epoch is not None:
                iterable.set_epoch(epoch)
            list(loader)
            warned.append(capfd.readouterr().err.count("epoch 1 is read again"))
        del loader
        loader = DataLoader(fixed, batch_size=None, num_workers=2, persistent_workers=persistent)
        assert labels_of(loader) == labels_of(loader)
        del loader
    assert warned == [0, 0, 1, 0]
    assert "read again" not in capfd.readouterr().err


def test_an_epoch_that_cannot_be_is_refused(dataset):
    with pytest.raises(grainstore.InvalidOption, match="epoch is -1"):
        IterableDataset(dataset).set_epoch(-1)
