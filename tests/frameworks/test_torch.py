"""grainstore.torch with torch's own DataLoader: samples by number, and what goes wrong."""

import os
import pickle
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, WeightedRandomSampler
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


def label_and_process(sample):
    return sample["label"], os.getpid()


def label_only(sample):
    return {"label": sample["label"]}


def refuse_17(sample):
    if sample["label"] == 17:
        raise ValueError("no seventeen")
    return sample["label"]


def die_at_40(sample):
    if sample["label"] == 40:
        os.kill(os.getpid(), signal.SIGKILL)
    return sample["label"]


def add_one_in_place(sample):
    sample["vector"] += 1
    return sample["vector"]


def test_a_sample_of_the_map_dataset_is_what_the_dataset_gives(path, dataset):
    mapped = MapDataset(path)
    assert len(mapped) == COUNT
    for index in (0, 57, -1, np.int64(3), torch.tensor(4), "s009"):
        found, expected = mapped[index], dataset[index]
        assert np.array_equal(found.pop("vector"), expected.pop("vector"))
        assert found == expected
    assert [sample["label"] for sample in mapped.__getitems__([5, 3, -1, 5])] == [5, 3, 100, 5]
    assert [sample["label"] for sample in mapped[10:16:2]] == [10, 12, 14]
    with pytest.raises(IndexError):
        mapped[COUNT]


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffling_and_samplers_work_as_with_any_dataset(dataset, workers):
    mapped = MapDataset(dataset)
    shuffled = labels_of(DataLoader(mapped, batch_size=8, shuffle=True, num_workers=workers))
    assert shuffled != sorted(shuffled) and sorted(shuffled) == list(range(COUNT))
    weights = [0.0] * COUNT
    weights[33] = 1.0
    sampler = WeightedRandomSampler(weights, num_samples=20)
    assert labels_of(DataLoader(mapped, batch_size=8, sampler=sampler, num_workers=workers)) == [33] * 20
    sampler = RandomSampler(mapped, generator=torch.Generator().manual_seed(1))
    assert sorted(labels_of(DataLoader(mapped, batch_size=None, sampler=sampler, collate_fn=as_batch))) == list(range(COUNT))


def as_batch(sample):
    return {"label": torch.tensor([sample["label"]])}


@pytest.mark.parametrize("start_method", ["fork", "forkserver"])
def test_workers_of_every_start_method_read_the_map_dataset(dataset, start_method):
    mapped = MapDataset(dataset, transform=label_and_process)
    context = torch.multiprocessing.get_context(start_method)
    # So that the workers of a forkserver need not.
    context.set_forkserver_preload(["torch", "grainstore.torch"])
    batches = list(DataLoader(mapped, batch_size=30, num_workers=2, multiprocessing_context=context))
    assert [label for labels, _ in batches for label in labels.tolist()] == list(range(COUNT))
    processes = {process for _, of_batch in batches for process in of_batch.tolist()}
    assert len(processes) == 2 and os.getpid() not in processes


def test_workers_that_are_spawned_read_the_map_dataset(dataset):
    # One, for each takes seconds to import torch.
    mapped = MapDataset(dataset, transform=label_only)
    assert labels_of(DataLoader(mapped, batch_size=30, num_workers=1, multiprocessing_context="spawn")) == list(range(COUNT))


def test_views_keep_their_order_in_the_map_dataset(dataset):
    mapped = MapDataset(dataset.select([9, 3, 5]))
    assert labels_of(DataLoader(mapped, batch_size=2)) == [9, 3, 5]


def test_arrays_of_a_sample_may_be_written_to_and_change_nothing_else(dataset):
    mapped = MapDataset(dataset, transform=add_one_in_place)
    assert [mapped[3].tolist(), mapped.__getitems__([3])[0].tolist()] == [[4, 4, 4]] * 2
    iterable = IterableDataset(dataset, order="sequential", transform=add_one_in_place)
    assert next(iter(iterable)).tolist() == [1, 1, 1]
    for each in (MapDataset(dataset), IterableDataset(dataset, order="sequential")):
        # With a warning as an error: torch warns of arrays that it may not write to.
        assert next(iter(DataLoader(each, batch_size=2)))["vector"].tolist() == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["map", "samples", "batches"])
def test_an_exception_of_a_transform_names_the_sample(dataset, kind, workers):
    view = dataset.select(range(10, 30))
    made, batch_size = {
        "map": lambda: (MapDataset(view, refuse_17), 4),
        "samples": lambda: (IterableDataset(view, transform=refuse_17), 4),
        "batches": lambda: (IterableDataset(view, 4, transform=refuse_17), None),
    }[kind]()
    with pytest.raises(grainstore.TransformFailed, match='sample 17 .key "s017".: .*ValueError: no seventeen') as caught:
        read(DataLoader(made, batch_size=batch_size, num_workers=workers))
    if workers == 0:
        assert (caught.value.ordinal, caught.value.key) == (17, b"s017")
        assert isinstance(caught.value.__cause__, ValueError)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), again.ordinal, again.key) == (grainstore.TransformFailed, 17, b"s017")


def test_an_exception_of_the_transform_of_a_sample_asked_by_key_names_it(dataset):
    with pytest.raises(grainstore.TransformFailed, match="sample 17") as caught:
        MapDataset(dataset, refuse_17)["s017"]
    assert caught.value.key == b"s017"


@pytest.mark.parametrize("kind", ["map", "batches"])
def test_a_worker_that_is_killed_is_an_error_of_torch_and_no_hang(dataset, kind):
    if kind == "map":
        loader = DataLoader(MapDataset(dataset, die_at_40), batch_size=5, num_workers=2, collate_fn=list)
    else:
        # A list, for a tensor is fetched from the worker that is dead.
        iterable = IterableDataset(dataset, 5, transform=die_at_40, collate=list)
        loader = DataLoader(iterable, batch_size=None, num_workers=2)
    with pytest.raises(RuntimeError, match="DataLoader worker .* (killed by signal: Killed|exited unexpectedly)"):
        read(loader)


def test_damage_met_by_a_worker_keeps_its_type(tmp_path):
    path = write(tmp_path / "damaged.grain", 20)
    segment = next(file for file in sorted(path.rglob("*")) if b"7777777777" in (file.read_bytes() if file.is_file() else b""))
    segment.write_bytes(segment.read_bytes().replace(b"7" * 50, b"7" * 49 + b"8", 1))
    for loader in (
        DataLoader(MapDataset(path), batch_size=5, num_workers=1),
        DataLoader(IterableDataset(path, 5), batch_size=None, num_workers=1),
    ):
        with pytest.raises(grainstore.DamagedSample, match="7"):
            read(loader)
    iterable = IterableDataset(path, 5, on_damage="skip")
    assert sorted(labels_of(DataLoader(iterable, batch_size=None, num_workers=1))) == [n for n in range(20) if n != 7]


def test_without_torch_the_import_names_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import grainstore.torch"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and "ImportError: grainstore.torch needs PyTorch" in ended.stderr
    assert "pip install torch" in ended.stderr


@pytest.mark.parametrize("batch_size", [None, 4])
def test_a_loader_in_a_data_loader_is_refused_with_the_remedy(dataset, batch_size):
    with pytest.raises(TypeError, match="without a DataLoader, or give the DataLoader grainstore.torch.IterableDataset"):
        next(iter(DataLoader(grainstore.Loader(dataset, 8), batch_size=batch_size)))


def test_uint64_numbers_are_collated_with_their_values(tmp_path):
    ids = [0, 2**63 - 1, 2**63, 2**64 - 1]
    with grainstore.Writer(tmp_path / "d.grain", {"data": "bytes", "id": "uint64"}, keyed=False) as writer:
        writer.write_batch(data=[b"x"] * 4, id=ids)
    with grainstore.open(tmp_path / "d.grain") as dataset:
        for loader in (
            DataLoader(MapDataset(dataset), 4),
            DataLoader(IterableDataset(dataset, 4, order="sequential"), batch_size=None),
            DataLoader(IterableDataset(dataset, order="sequential"), 4),
        ):
            (batch,) = loader
            assert (batch["id"].dtype, batch["id"].tolist()) == (torch.uint64, ids)
        (stacked,) = grainstore.Loader(dataset, 4, order="sequential", transform=lambda sample: sample["id"])
        assert (stacked.dtype, stacked.tolist()) == (np.uint64, ids)
        with pytest.raises(grainstore.InvalidOption, match=r"return torch\.tensor\(number, dtype=torch\.uint64\)"):
            list(IterableDataset(dataset, 4, transform=lambda sample: sample["id"]))
        tensors = IterableDataset(dataset, 4, order="sequential", transform=lambda s: torch.tensor(s["id"], dtype=torch.uint64))
        assert [batch.tolist() for batch in tensors] == [ids]


def test_numbers_of_16_bits_and_times_are_collated_with_their_values(tmp_path):
    schema = {"half": "float16", "brain": "bfloat16", "time": "timestamp", "vector": "float16[2]", "boxes": "bfloat16[2]"}
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with grainstore.Writer(tmp_path / "d.grain", schema, keyed=False) as writer:
        for row in range(4):
            vector, boxes = np.array([row, 0.5], np.float16), np.array([row, -2], ml_dtypes.bfloat16)
            writer.write(half=row / 2, brain=row / 4, time=np.datetime64(row, "s"), vector=vector, boxes=boxes)
    expected = {
        "half": [0, 0.5, 1, 1.5],
        "brain": [0, 0.25, 0.5, 0.75],
        "time": [0, 10**9, 2 * 10**9, 3 * 10**9],
        "vector": [[row, 0.5] for row in range(4)],
        "boxes": [[row, -2] for row in range(4)],
    }
    arrays = {"time": torch.int64, "vector": torch.float16, "boxes": torch.bfloat16}
    with grainstore.open(tmp_path / "d.grain") as dataset:
        (by_columns,) = DataLoader(IterableDataset(dataset, 4, order="sequential"), batch_size=None)
        (by_samples,) = DataLoader(MapDataset(dataset), 4)
        (in_order,) = DataLoader(IterableDataset(dataset, order="sequential"), 4)
        assert dataset.filter("half >= 0.5 and brain < 0.75").ordinals.tolist() == [1, 2]
    for batch, types in (
        (by_columns, {"half": torch.float16, "brain": torch.bfloat16, **arrays}),
        # A number of a sample is Python's.
        (by_samples, {"half": torch.float64, "brain": torch.float64, **arrays}),
        (in_order, {"half": torch.float64, "brain": torch.float64, **arrays}),
    ):
        assert {name: column.tolist() for name, column in batch.items()} == expected
        assert {name: column.dtype for name, column in batch.items()} == types


def test_a_file_that_is_cut_short_is_an_error_of_the_worker_and_not_its_end(tmp_path):
    path = write(tmp_path / "cut.grain")
    with grainstore.open(path) as opened:
        assert opened[0] and opened.stats()["io"] == "mapped"
        os.truncate(path / "00000.seg", 8192)
        # torch's workers handle the signal, too, from their start on.
        loader = DataLoader(MapDataset(opened), batch_size=8, num_workers=2, multiprocessing_context="fork")
        with pytest.raises(grainstore.Error, match="file ends at"):
            list(loader)


def some_missing(tmp_path):
    with grainstore.Writer(tmp_path / "d.grain", {"data": "bytes", "age": "int32"}) as writer:
        for number in range(6):
            writer.write(key=str(number), data=b"x", age=None if number == 4 else number)
    return grainstore.open(tmp_path / "d.grain")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_value_that_a_sample_lacks_is_named_where_torch_would_collate_it(tmp_path, workers):
    dataset = some_missing(tmp_path)
    missing = 'sample 4 has no value of "age", and PyTorch cannot collate None'
    with pytest.raises(grainstore.InvalidOption, match=missing):
        read(DataLoader(MapDataset(dataset), batch_size=3, num_workers=workers))
    with pytest.raises(grainstore.InvalidOption, match=missing):
        read(DataLoader(torch.utils.data.Subset(MapDataset(dataset), [5, 4]), batch_size=2, num_workers=workers))
    present = DataLoader(MapDataset(dataset.filter("age is present")), batch_size=3, num_workers=workers)
    assert [age for batch in present for age in batch["age"].tolist()] == [0, 1, 2, 3, 5]
    assert len(read(DataLoader(MapDataset(dataset.select_columns(["data"])), batch_size=3, num_workers=workers))) == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_a_number_that_torch_would_not_collate_is_named(tmp_path, workers):
    dataset = some_missing(tmp_path)
    large = 'has 9223372036854775811 as "id", and PyTorch collates integers to int64: .*dtype=torch.uint64'
    with pytest.raises(grainstore.InvalidOption, match=f"sample 3 {large}"):
        read(DataLoader(MapDataset(dataset, transform=with_large_number), batch_size=4, num_workers=workers))
    keyed = grainstore.open(dataset.paths, keys=True)
    with pytest.raises(grainstore.InvalidOption, match="a sample .key '4'. has no value of \"age\""):
        read(DataLoader(IterableDataset(keyed), batch_size=4, num_workers=workers))
    with pytest.raises(grainstore.InvalidOption, match=f"a sample {large}"):
        read(DataLoader(IterableDataset(dataset, transform=with_large_number), batch_size=4, num_workers=workers))
    assert read(DataLoader(MapDataset(dataset, transform=as_tensor), batch_size=6, num_workers=workers))[0].tolist()[3] == (1 << 63) + 3


def with_large_number(sample):
    return {"id": (1 << 63) + sample["age"] if sample["age"] == 3 else 0}


def as_tensor(sample):
    return torch.tensor((1 << 63) + (sample["age"] or 0), dtype=torch.uint64)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_collate_function_of_ones_own_gets_none(tmp_path, workers):
    mapped = MapDataset(some_missing(tmp_path))
    assert mapped[4]["age"] is None
    batches = DataLoader(mapped, batch_size=3, num_workers=workers, collate_fn=ages)
    assert list(batches) == [[0, 1, 2], [3, None, 5]]


def ages(samples):
    return [sample["age"] for sample in samples]


def ragged(folder):
    with grainstore.Writer(folder / "ragged.grain", {"rows": "int64[]"}, keyed=False) as writer:
        for number in range(3):
            writer.write(rows=[number] * number)
    return grainstore.open(folder / "ragged.grain")


def test_the_first_loop_over_any_of_the_readers_is_silent(dataset, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # PyTorch says it once for each process, unless it is asked to say it always.
        before = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            for batch in grainstore.Loader(dataset, 10):
                assert torch.as_tensor(batch["label"]).shape == batch["label"].shape
                assert torch.from_numpy(batch["vector"]).dtype == torch.float32
            rows = ragged(tmp_path).get_batch([2, 0, 1])["rows"]
            assert [torch.from_numpy(row).tolist() for row in rows] == [[2, 2], [], [1]]
            for _ in grainstore.Loader(dataset, 10, transform=lambda sample: torch.from_numpy(sample["vector"])):
                pass
            for data in (dataset, MapDataset(dataset), IterableDataset(dataset)):
                assert sum(len(batch["label"]) for batch in DataLoader(data, batch_size=10)) == COUNT
        finally:
            torch.set_warn_always(before)
