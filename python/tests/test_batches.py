"""Batches: columns of the requested samples, in the requested order."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from random import Random

import made
import numpy as np
import pytest

import grainstore

NUMBERS = [7, 299, 7, 3, 0, 5, 14, 150]


@pytest.fixture
def batch(ds: grainstore.Dataset) -> grainstore.Batch:
    return ds.get_batch(NUMBERS)


def test_a_batch_is_columns(batch: grainstore.Batch) -> None:
    samples = [made.sample(number) for number in NUMBERS]
    assert len(batch) == len(NUMBERS)
    assert batch.ordinals.tolist() == NUMBERS
    assert batch.positions.tolist() == []
    assert (batch.padded_count, batch.skipped) == (0, [])
    assert isinstance(batch["image"], grainstore.Buffers)
    assert batch["image"].tolist() == [sample["image"] for sample in samples]
    assert batch["text"] == [sample["text"] for sample in samples]
    assert batch["label"].tolist() == NUMBERS
    assert batch["weight"].dtype == np.float32
    assert batch["good"].dtype == np.bool_
    assert batch["nothing"].shape == (len(NUMBERS), 0, 4)
    for name in ("vector", "level"):
        column = batch[name]
        assert isinstance(column, np.ma.MaskedArray)
        for row, sample in zip(column, samples, strict=True):
            if sample[name] is None:
                assert np.ma.getmaskarray(row).all()
            else:
                np.testing.assert_array_equal(row, sample[name])


def test_arrays_of_which_none_is_missing_are_stacked_without_a_mask(ds: grainstore.Dataset) -> None:
    vectors = ds.get_batch([0, 1, 2])["vector"]
    assert not isinstance(vectors, np.ma.MaskedArray)
    assert (vectors.dtype, vectors.shape) == (np.dtype(np.float32), (3, 2, 3))
    np.testing.assert_array_equal(vectors, np.stack([made.sample(number)["vector"] for number in range(3)]))


@pytest.mark.parametrize("length", [0, 100, 70_000, 1_000_003])
def test_buffers_of_any_length_are_copied_byte_for_byte(length: int) -> None:
    # The longest are copied by several threads.
    noise = Random(7)
    items = [None if number % 7 == 3 else noise.randbytes(length + number) for number in range(24)]
    buffers = grainstore.Buffers(items)
    first, second = buffers.tolist(), buffers.tolist()
    assert first == second == items
    assert all(one is not other for one, other in zip(first, second, strict=True) if one)


def test_a_batch_is_samples_too(batch: grainstore.Batch) -> None:
    for place, number in enumerate(NUMBERS):
        made.assert_same(batch[place], made.sample(number))
        made.assert_same(batch[place - len(NUMBERS)], made.sample(number))
    for sample, number in zip(batch.tolist(), NUMBERS, strict=True):
        made.assert_same(sample, made.sample(number))
    for place in (len(NUMBERS), -len(NUMBERS) - 1):
        with pytest.raises(IndexError, match="it has 8"):
            batch[place]


def test_a_batch_has_the_names_of_its_columns(batch: grainstore.Batch) -> None:
    assert batch.keys() == list(batch) == list(batch.to_dict()) == list(made.SCHEMA)
    assert "label" in batch
    assert "nope" not in batch
    with pytest.raises(grainstore.NoSuchName, match="nope"):
        batch["nope"]
    for wrong in (None, 1.5, slice(0, 1)):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            batch[wrong]  # type: ignore[call-overload]
    assert repr(batch).startswith("<grainstore.Batch of 8 samples")


def test_keys_are_a_column_where_they_are_asked_for(made_path: Path) -> None:
    with grainstore.open(made_path, keys=True) as ds:
        batch = ds.get_batch(NUMBERS)
        assert batch.keys() == ["key", *made.SCHEMA]
        assert batch["key"] == [made.key(number) for number in NUMBERS]


def test_any_numbers_in_any_order_give_their_samples(ds: grainstore.Dataset) -> None:
    draw = np.random.default_rng(7)
    for _ in range(20):
        numbers = draw.integers(-made.COUNT, made.COUNT, draw.integers(0, 500))
        batch = ds.get_batch(numbers)
        wanted = (numbers % made.COUNT).tolist()
        assert batch["label"].tolist() == batch.ordinals.tolist() == wanted
        assert batch["image"].tolist() == [made.sample(number)["image"] for number in wanted]


def test_buffers_are_views_of_one_block(batch: grainstore.Batch) -> None:
    buffers = batch["image"]
    images = [made.sample(number)["image"] for number in NUMBERS]
    assert len(buffers) == len(NUMBERS)
    block = buffers.block
    assert (block.dtype, block.ndim, block.flags.writeable) == (np.dtype(np.uint8), 1, False)
    assert buffers.lengths.tolist() == [len(image) for image in images]
    for place, (view, image) in enumerate(zip(buffers, images, strict=True)):
        assert isinstance(view, memoryview)
        assert view.readonly
        assert view == buffers[place] == image
        start = buffers.offsets[place]
        assert block[start : start + len(image)].tobytes() == image
        if image:
            assert np.shares_memory(block, np.frombuffer(view, np.uint8))
    assert buffers[-1] == images[-1]
    assert [bytes(view) for view in buffers[::-2]] == images[::-2]
    assert buffers[2:4].tolist() == images[2:4]
    assert np.shares_memory(buffers[1:2].block, block)
    with pytest.raises(IndexError):
        buffers[8]
    with pytest.raises(IndexError):
        buffers[-9]
    with pytest.raises(TypeError):
        buffers["a"]


def test_buffers_are_made_of_bytes_and_cross_processes(batch: grainstore.Batch) -> None:
    again = pickle.loads(pickle.dumps(batch["image"]))
    assert again.tolist() == batch["image"].tolist()
    made_by_hand = grainstore.Buffers([b"ab", None, b""])
    assert made_by_hand.tolist() == [b"ab", None, b""]
    assert made_by_hand[1] is None
    assert made_by_hand.lengths.tolist() == [2, 0, 0]
    assert pickle.loads(pickle.dumps(made_by_hand)).tolist() == [b"ab", None, b""]
    with pytest.raises(TypeError):
        grainstore.Buffers(["text"])  # type: ignore[list-item]
    for name in ("label", "vector", "text", "level"):
        found = pickle.loads(pickle.dumps(batch[name]))
        assert type(found) is type(batch[name])
        assert np.array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(batch[name]))


def test_fields_that_are_missing_are_none(tmp_path: Path) -> None:
    with grainstore.Writer(tmp_path / "d.grain", {"image": "bytes", "mask": "bytes"}, keyed=False) as writer:
        writer.write(image=b"a", mask=b"b")
        writer.write(image=b"c")
        writer.write(mask=None)
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert list(ds) == [{"image": b"a", "mask": b"b"}, {"image": b"c", "mask": None}, {"image": None, "mask": None}]
        batch = ds.get_batch([2, 1, 0])
        assert batch["mask"].tolist() == [None, None, b"b"]
        assert list(batch["mask"])[:2] == [None, None]
        assert batch["mask"].lengths.tolist() == [0, 0, 1]
        assert batch["image"].tolist() == [None, b"c", b"a"]


@pytest.mark.parametrize("payload", ["memoryview", "numpy"])
def test_payloads_are_lent_without_a_copy_and_read_only(made_path: Path, payload: str) -> None:
    with grainstore.open(made_path, payload=payload) as ds:  # type: ignore[arg-type]
        samples = [ds[7], ds.__getitems__([3, 7])[1], ds.get_batch([7])[0], next(iter(ds[7:]))]
        batch = ds.get_batch([7, 8])
        lent = np.frombuffer(batch[0]["image"], np.uint8)
        assert np.shares_memory(lent, batch["image"].block)
        assert np.shares_memory(batch[0]["vector"], batch["image"].block)
    del ds
    gc.collect()
    for sample in samples:
        image = sample["image"]
        if payload == "numpy":
            assert isinstance(image, np.ndarray)
            assert (image.dtype, image.flags.writeable) == (np.dtype(np.uint8), False)
        else:
            assert isinstance(image, memoryview)
            assert image.readonly
        made.assert_same(sample | {"image": bytes(image)}, made.sample(7))
        assert not sample["vector"].flags.writeable


def test_what_a_batch_lends_outlives_batch_and_dataset(made_path: Path) -> None:
    ds = grainstore.open(made_path)
    batch = ds.get_batch(NUMBERS)
    ds.close()
    assert batch["label"].tolist() == NUMBERS
    views, block, labels = list(batch["image"]), batch["image"].block, batch["label"]
    total = int(block.sum())
    del batch, ds
    gc.collect()
    assert [bytes(view) for view in views] == [made.sample(number)["image"] for number in NUMBERS]
    assert int(block.sum()) == total
    assert labels.tolist() == NUMBERS


def test_a_batch_has_what_a_mapping_has(ds: grainstore.Dataset) -> None:
    batch = ds.get_batch([4, 2])
    columns = batch.to_dict()
    assert [name for name, _ in batch.items()] == batch.keys() == list(columns)
    for values in ([column for _, column in batch.items()], batch.values(), [batch.get(name) for name in batch.keys()]):
        for value, wanted in zip(values, columns.values(), strict=True):
            assert type(value) is type(wanted)
            if isinstance(wanted, np.ndarray):
                np.testing.assert_array_equal(value, wanted)
    assert batch.get("nope") is None and batch.get("nope", 3) == 3
    assert "label" in batch and "nope" not in batch and 3 not in batch
    with pytest.raises(TypeError):
        batch["label"] = 3  # type: ignore[index]


def test_columns_of_a_batch_and_arrays_of_a_sample_are_the_callers_own(made_path: Path) -> None:
    with grainstore.open(made_path) as ds:
        batch, again = ds.get_batch([6, 7]), ds.get_batch([6, 7])
        sample = ds[7]
        for array in (batch["label"], batch["weight"], ds[6:8].get_batch([0, 1])["good"], sample["vector"], batch[1]["vector"]):
            assert array.flags.writeable
            array[...] = 0
        assert again["label"].tolist() == ds.get_batch([6, 7])["label"].tolist() == [6, 7]
        made.assert_same(ds[7], made.sample(7))


def test_a_column_of_arrays_is_writable_where_none_is_missing(tmp_path: Path) -> None:
    with grainstore.Writer(tmp_path / "d.grain", {"x": "float32[2]", "none": "int16[0]"}, keyed=False) as writer:
        writer.write_batch(x=np.ones((3, 2), np.float32), none=np.zeros((3, 0), np.int16))
    ds = grainstore.open(tmp_path / "d.grain")
    x = ds.get_batch([0, 2])["x"]
    x[0] = 5
    assert x.tolist() == [[5, 5], [1, 1]] and ds.get_batch([0])["x"].tolist() == [[1, 1]]
    assert ds.get_batch([0, 2])["none"].shape == (2, 0) and ds.get_batch([])["x"].shape == (0, 2)
