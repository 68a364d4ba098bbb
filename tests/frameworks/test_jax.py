"""Grain and JAX read what grainstore holds: as a source of Grain's, and in grainstore's own epochs."""

import io
import json
import pathlib
import re
import subprocess
import sys

import grain
import jax
import numpy as np
import PIL.Image
import pytest
from absl import flags

import grainstore
import grainstore.jax

ROOT = pathlib.Path(__file__).parents[2]
COUNT = 200

# What absl's app.run does in a program. Grain's worker processes do not start without it.
flags.FLAGS.mark_as_parsed()


def numbered(path, count=COUNT):
    """Sample i has i in every field and attribute."""
    schema = {"image": "bytes", "caption": "str", "x": "float32[2,3]", "label": "int64"}
    with grainstore.Writer(path, schema, keyed=False) as writer:
        for number in range(count):
            image, x = bytes([number % 256]) * (number % 5), np.full((2, 3), number, np.float32)
            writer.write(image=image, caption=f"é{number}", x=x, label=number)
    return grainstore.open(path)


@pytest.fixture
def dataset(tmp_path):
    return numbered(tmp_path / "numbered.grain")


def doubled(batch):
    return {"x": batch["x"] * 2, "label": batch["label"]}


class Doubled(grain.transforms.Map):
    def map(self, sample):
        return doubled(sample)


def labels(batches):
    return [int(label) for batch in batches for label in np.asarray(batch["label"])]


def pipeline_of(source, seed=3):
    return source.shuffle(seed=seed).map(doubled).batch(32).to_iter_dataset()


def test_a_dataset_is_a_source_of_grain_as_it_is(dataset):
    assert isinstance(dataset, grain.sources.RandomAccessDataSource)
    batches = list(pipeline_of(grain.MapDataset.source(dataset)))
    assert sorted(labels(batches)) == list(range(COUNT))
    assert labels(batches) != list(range(COUNT))
    for batch in batches:
        assert np.array_equal(batch["x"], np.broadcast_to(2.0 * batch["label"][:, None, None], batch["x"].shape))


def test_a_view_is_a_source_too(dataset):
    batches = list(pipeline_of(grain.MapDataset.source(dataset.filter("label >= 150"))))
    assert sorted(labels(batches)) == list(range(150, COUNT))


def test_grain_shuffles_numbers_and_the_dataset_reads_whole_batches(dataset):
    read = grain.MapDataset.range(len(dataset)).shuffle(seed=3).batch(32).map(lambda numbers: dataset.get_batch(numbers))
    expected = grain.MapDataset.source(dataset).shuffle(seed=3).batch(32)
    assert [batch["label"].tolist() for batch in read] == [batch["label"].tolist() for batch in expected]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_data_loader_of_grain_reads_every_sample_once(dataset, workers):
    no_shards = grain.sharding.NoSharding()
    sampler = grain.samplers.IndexSampler(len(dataset), shuffle=True, seed=5, num_epochs=1, shard_options=no_shards)
    operations = [Doubled(), grain.transforms.Batch(16)]
    loader = grain.DataLoader(data_source=dataset, sampler=sampler, operations=operations, worker_count=workers)
    iterator = iter(loader)
    first = [next(iterator) for _ in range(4)]
    state = iterator.get_state()
    rest = list(iterator)
    assert sorted(labels(first + rest)) == list(range(COUNT))
    again = iter(loader)
    again.set_state(state)
    assert labels(again) == labels(rest)


def test_epochs_come_whole_and_each_in_an_order_of_its_own(dataset):
    epochs = grainstore.jax.IterDataset(grainstore.Loader(dataset, 32, seed=3), num_epochs=2)
    read = labels(epochs)
    assert sorted(read[:COUNT]) == sorted(read[COUNT:]) == list(range(COUNT))
    assert read[:COUNT] != read[COUNT:]
    loader = grainstore.Loader(dataset, 32, seed=3)
    assert read == labels(loader) + labels(loader)


def test_every_iterator_begins_where_the_loader_stood_and_leaves_the_loader_alone(dataset):
    loader = grainstore.Loader(dataset, 32, seed=3, epoch=4)
    epochs = grainstore.jax.IterDataset(loader)
    first = labels(epochs)
    loader.set_epoch(9)
    assert labels(epochs) == first
    assert loader.epoch == 9
    assert first == labels(grainstore.Loader(dataset, 32, seed=3, epoch=4))


def test_epochs_without_end_go_on_and_an_epoch_without_batches_ends(dataset):
    endless = iter(grainstore.jax.IterDataset(grainstore.Loader(dataset, 100, seed=3), num_epochs=None))
    assert len([next(endless) for _ in range(9)]) == 9
    none = grainstore.Loader(dataset, COUNT + 1, drop_last=True)
    assert list(grainstore.jax.IterDataset(none, num_epochs=None)) == []


def test_a_batch_has_a_column_for_each_name(dataset):
    loader = grainstore.Loader(dataset, 32, order="sequential")
    batch = next(iter(grainstore.jax.IterDataset(loader)))
    assert list(batch) == ["image", "caption", "x", "label"]
    assert batch["image"].tolist() == [bytes([number]) * (number % 5) for number in range(32)]
    assert batch["caption"] == [f"é{number}" for number in range(32)]
    assert batch["x"].shape == (32, 2, 3) and batch["x"].dtype == np.float32


def test_what_a_transform_makes_is_handed_on(dataset):
    loader = grainstore.Loader(dataset, 32, order="sequential", transform=doubled)
    batch = next(iter(grainstore.jax.IterDataset(loader)))
    assert np.array_equal(batch["x"][:, 0, 0], 2 * np.arange(32))
    one = next(iter(grainstore.jax.IterDataset(grainstore.Loader(dataset, None, order="sequential"))))
    assert one["caption"] == "é0"


@pytest.mark.parametrize("batch_size", [8, None])
def test_an_iterator_resumes_from_any_of_its_states(tmp_path, batch_size):
    dataset = numbered(tmp_path / "few.grain", 30)
    # The stock check of Grain: every state restores, and is the same again.
    epochs = grainstore.jax.IterDataset(grainstore.Loader(dataset, batch_size, seed=3), num_epochs=2).map(doubled)
    grain.experimental.assert_equal_output_after_checkpoint(epochs)


def test_a_checkpoint_of_grain_holds_the_place_in_the_epoch(dataset, tmp_path):
    epochs = grainstore.jax.IterDataset(grainstore.Loader(dataset, 32, seed=3), num_epochs=2)
    iterator = iter(epochs.map(doubled))
    before = [next(iterator) for _ in range(9)]
    handler = grain.checkpoint.CheckpointHandler()
    handler.save(tmp_path, iterator)
    after = labels(iterator)
    restored = handler.restore(tmp_path, iter(epochs.map(doubled)))
    assert labels(restored) == after
    assert sorted(labels(before) + after) == sorted(2 * list(range(COUNT)))


def test_a_state_of_something_else_is_refused(dataset, tmp_path):
    epochs = grainstore.jax.IterDataset(grainstore.Loader(dataset, 32, seed=3))
    state = iter(epochs).get_state()
    json.dumps(state)
    for wrong in ({**state, "fingerprint": "0" * 16}, {**state, "epoch": 2}, {}, None):
        with pytest.raises(grainstore.InvalidState):
            iter(epochs).set_state(wrong)


def test_worker_processes_read_shares_that_together_are_the_epoch(dataset):
    epochs = grainstore.jax.IterDataset(grainstore.Loader(dataset, 20, seed=3), num_epochs=2).map(doubled)
    shared = epochs.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    iterator = iter(shared)
    first = labels([next(iterator) for _ in range(7)])
    state = iterator.get_state()
    rest = labels(iterator)
    iterator.close()
    assert sorted(first + rest) == sorted(2 * list(range(COUNT)))
    again = iter(shared)
    again.set_state(state)
    assert labels(again) == rest
    again.close()


def test_workers_of_equal_ranks_may_be_unequal(dataset):
    # One sample more than two batches of each worker: the first has one batch more.
    loader = grainstore.Loader(dataset[:41], 10, seed=3)
    shared = grainstore.jax.IterDataset(loader).map(doubled).mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    iterator = iter(shared)
    assert sorted(labels(iterator)) == list(range(41))
    iterator.close()
    loader = grainstore.Loader(dataset[:41], 10, rank=1, world_size=2)
    with pytest.raises(grainstore.InvalidOption, match="2 ranks would not have equally many batches"):
        next(iter(grainstore.jax.IterDataset(loader)))


def test_batches_go_to_the_device(dataset):
    epochs = grainstore.jax.IterDataset(grainstore.Loader(dataset, 32, seed=3)).map(doubled)
    batches = list(grain.experimental.device_put(epochs, jax.devices()[0]))
    assert all(isinstance(batch["x"], jax.Array) for batch in batches)
    assert sorted(labels(batches)) == list(range(COUNT))


def test_a_missing_number_is_refused_and_never_a_zero(tmp_path):
    schema = {"image": "bytes", "x": "float32[2]", "label": "int64"}
    with grainstore.Writer(tmp_path / "holes.grain", schema, keyed=False) as writer:
        for number in range(10):
            x, label = np.zeros(2, np.float32), number
            writer.write(image=b"", x=None if number == 6 else x, label=None if number == 7 else label)
    dataset = grainstore.open(tmp_path / "holes.grain")
    loader = grainstore.Loader(dataset[:6], 3, order="sequential")
    for batch in grainstore.jax.IterDataset(loader):
        assert type(batch["label"]) is np.ndarray
    for view, name in ((dataset[:7], "x"), (dataset[7:], "label")):
        with pytest.raises(grainstore.InvalidOption, match=f"column '{name}': 1 of "):
            list(grainstore.jax.IterDataset(grainstore.Loader(view, 10)))
    whole = dataset.select(~np.ma.getmaskarray(dataset.column("label")))
    assert len(whole) == 9


@pytest.mark.parametrize("batch_size", [4, None])
def test_pictures_that_the_loader_decodes_are_arrays_of_pixels(tmp_path, batch_size):
    with grainstore.Writer(tmp_path / "pictures.grain", {"image": "bytes", "label": "int64"}, keyed=False) as writer:
        for number in range(8):
            file = io.BytesIO()
            PIL.Image.new("RGB", (20, 24), (10 * number,) * 3).save(file, "PNG")
            writer.write(image=file.getvalue(), label=number)
    loader = grainstore.Loader(grainstore.open(tmp_path / "pictures.grain"), batch_size, decode=grainstore.Image(16))
    elements = list(grainstore.jax.IterDataset(loader))
    assert sorted(label for element in elements for label in np.atleast_1d(element["label"])) == list(range(8))
    for element in elements:
        assert type(element["image"]) is np.ndarray and element["image"].dtype == np.uint8
        assert element["image"].shape == ((4, 16, 16, 3) if batch_size else (16, 16, 3))
        assert (element["image"].reshape(-1, 768) == 10 * np.atleast_1d(element["label"])[:, None]).all()


def test_invalid_options_are_reported_at_once(dataset):
    with pytest.raises(TypeError, match="grainstore.Loader, not Dataset"):
        grainstore.jax.IterDataset(dataset)
    with pytest.raises(grainstore.InvalidOption, match="num_epochs is 0"):
        grainstore.jax.IterDataset(grainstore.Loader(dataset), num_epochs=0)


def test_without_grain_the_import_names_what_to_install():
    code = "import sys; sys.modules['grain'] = None; import grainstore.jax"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert "ImportError: grainstore.jax needs Grain, which is not installed: pip install grain" in done.stderr


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python/jax.md").read_text(), re.DOTALL)
    assert len(blocks) == 7
    page = {}
    for block in blocks:
        exec(compile(block, "jax.md", "exec"), page)
    assert len(list(page["loader"])) == 31
    assert page["whole"].shape == (32, 8)


def test_the_example_runs():
    done = subprocess.run([sys.executable, ROOT / "examples/jax_grain.py"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "resumed after 100 of 128 batches: 28 batches, equal: True" in done.stdout
