"""16-bit floats, timestamps, categories and arrays of any length: as NumPy computes and holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grainstore

SCHEMA = {"data": "bytes", "half": "float16", "brain": "bfloat16", "time": "timestamp", "split": "category"}
TIMES = [np.datetime64("2026-11-22T23:30:00.123456789"), np.datetime64("1969-12-31"), np.datetime64(0, "ns"), 1_500]
SPLITS = ["train", "test", "", "größe"]


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    schema = None if options.get("append") else SCHEMA
    with grainstore.Writer(path, schema, **({} if options.get("append") else {"keyed": False}), **options) as writer:
        for row in rows:
            writer.write(**{"data": b"x", **row})
    return path


def row(number: int) -> dict[str, Any]:
    return {
        "half": np.float16(number / 3),
        "brain": float(number),
        "time": TIMES[number % 4],
        "split": None if number % 5 == 2 else SPLITS[number % 4],
    }


def bfloat16_bits(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits of the nearest bfloat16, ties to even, of finite float32 values."""
    bits = values.astype("<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def test_columns_are_arrays_of_their_types(tmp_path: Path) -> None:
    dataset = grainstore.open(write(tmp_path / "d.grain", [row(number) for number in range(40)]))
    assert dataset.schema == SCHEMA
    halves = dataset.column("half")
    assert halves.dtype == np.float16
    assert np.array_equal(halves, (np.arange(40) / 3).astype(np.float16))
    brain = dataset.column("brain")
    assert brain.dtype.name in ("uint16", "bfloat16")
    assert np.array_equal(brain.view("<u2"), bfloat16_bits(np.arange(40)))
    times = dataset.column("time")
    assert times.dtype == np.dtype("datetime64[ns]")
    expected = [time if isinstance(time, int) else int(time.astype("<M8[ns]").astype(np.int64)) for time in TIMES]
    assert times.view(np.int64).tolist() == expected * 10
    batch = dataset.get_batch([3, 1])
    assert batch["half"].tolist() == halves[[3, 1]].tolist()
    assert batch["time"].tolist() == times[[3, 1]].tolist()


def test_arrays_of_any_length_in_a_batch_are_the_callers_own(tmp_path: Path) -> None:
    rows = [[1.5, 2.5], None, [], [3.5], [4.5] * 7]
    with grainstore.Writer(tmp_path / "d.grain", {"x": "float32[]", "boxes": "int16[,2]"}, keyed=False) as writer:
        for number, one in enumerate(rows):
            writer.write(x=None if one is None else np.array(one, np.float32), boxes=np.full((number, 2), number, np.int16))
    dataset = grainstore.open(tmp_path / "d.grain")
    batch = dataset.get_batch([4, 1, 0, 2, 0])
    x, boxes = batch["x"], batch["boxes"]
    assert [None if one is None else one.tolist() for one in x] == [rows[number] for number in (4, 1, 0, 2, 0)]
    assert [one.tolist() for one in boxes] == [[[number, number]] * number for number in (4, 1, 0, 2, 0)]
    assert all(one.flags.writeable for one in [*x, *boxes] if one is not None)
    x[2][:] = 9
    assert [one.tolist() for one in (x[0], x[4], batch["x"][2])] == [rows[4], rows[0], rows[0]]


def test_categories_are_codes_in_columns_and_texts_in_samples(tmp_path: Path) -> None:
    rows = [row(number) for number in range(40)]
    path = write(tmp_path / "d.grain", rows[:23], segment_bytes=4100)
    write(path, rows[23:], append=True)
    dataset = grainstore.open(path)
    codes, names = dataset.column("split"), dataset.categories("split")
    assert codes.dtype == np.uint8
    assert names == list(dict.fromkeys(row["split"] for row in rows if row["split"] is not None))
    texts = [None if missing else names[code] for code, missing in zip(codes.data, np.ma.getmaskarray(codes))]
    assert texts == [row["split"] for row in rows]
    assert [sample["split"] for sample in dataset] == texts
    assert dataset[0]["time"] == TIMES[0] and dataset[0]["time"].dtype == np.dtype("datetime64[ns]")
    batch = dataset.get_batch([4, 2])
    assert batch["split"].mask.tolist() == [False, True]
    assert names[batch["split"][0]] == rows[4]["split"]
    train = dataset.filter("split is present and split == 'train'")
    assert [sample["split"] for sample in train] == ["train"] * len(train)
    assert len(train) == texts.count("train")
    beginning = dataset.filter("split is present and (split starts with 'tr' or split contains 'rai')")
    assert [sample["split"] for sample in beginning] == ["train"] * len(train)
    with pytest.raises(grainstore.Error, match=r"data at column 1: a field of the samples: .*; select\(ordinals\)"):
        dataset.filter("data contains 'a'")
    with pytest.raises(grainstore.Error, match='no category "valid"'):
        dataset.filter("split is present and split == 'valid'")
    with pytest.raises(grainstore.Error, match="not category"):
        dataset.categories("half")


def test_several_datasets_have_one_list_of_categories(tmp_path: Path) -> None:
    rows = [{**row(0), "split": split} for split in ("b", "a", "c", "a", "d")]
    first = write(tmp_path / "1.grain", rows[:2])
    second = write(tmp_path / "2.grain", rows[2:])
    dataset = grainstore.open([first, second])
    assert dataset.categories("split") == ["b", "a", "c", "d"]
    assert dataset.column("split").tolist() == [0, 1, 2, 1, 3]
    assert dataset.get_batch([4, 3])["split"].tolist() == [3, 1]
    assert [sample["split"] for sample in dataset.filter("split in 'd', 'b'")] == ["b", "d"]


def test_numbers_round_to_16_bits_as_numpy_rounds_them(tmp_path: Path) -> None:
    draw = np.random.default_rng(7)
    every = np.arange(0x7C00, dtype="<u2").view(np.float16).astype(np.float64)
    chosen = draw.integers(0, len(every) - 1, 500)
    middles = (every[chosen] + every[chosen + 1]) / 2
    values = np.concatenate([middles, np.nextafter(middles, 0), np.nextafter(middles, 1e9), -every[chosen]])
    rows = [{**row(0), "half": float(value)} for value in values]
    found = grainstore.open(write(tmp_path / "d.grain", rows)).column("half")
    assert np.array_equal(found, values.astype(np.float16))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("half", 65520.0, OverflowError),
        ("half", "1", TypeError),
        ("brain", 1e39, OverflowError),
        ("time", np.datetime64("NaT"), ValueError),
        ("time", np.datetime64("9999-01-01"), OverflowError),
        ("time", 1.5, TypeError),
        ("time", 2**63, OverflowError),
        ("time", -(2**63), ValueError),
        ("split", 3, TypeError),
        ("split", b"train", TypeError),
        ("split", "x" * 65536, ValueError),
    ],
)
def test_what_does_not_fit_is_an_error(tmp_path: Path, name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        write(tmp_path / "d.grain", [{**row(0), name: value}])
    assert not (tmp_path / "d.grain").exists()


def test_arrays_of_any_length_keep_their_own_shape(tmp_path: Path) -> None:
    path = tmp_path / "d.grain"
    boxes = [np.arange(4 * count, dtype=np.float32).reshape(count, 4) for count in (3, 0, 1)]
    halves = [np.arange(count, dtype=np.float16) for count in (2, 5, 0)]
    with grainstore.Writer(path, {"boxes": "float32[,4]", "halves": "float16[]"}, keyed=False) as writer:
        for each, half in zip(boxes, halves):
            writer.write(boxes=each, halves=half)
        writer.write(boxes=None, halves=[0.5, 2])
        with pytest.raises(grainstore.InvalidSample, match=r"expected the shape \[any, 4\]"):
            writer.write(boxes=np.zeros((2, 3), np.float32), halves=[])
    dataset = grainstore.open(path)
    for sample, each, half in zip(dataset, boxes, halves):
        assert sample["boxes"].dtype == np.float32 and np.array_equal(sample["boxes"], each)
        assert sample["boxes"].shape == each.shape
        assert sample["halves"].dtype == np.float16 and np.array_equal(sample["halves"], half)
    assert dataset[3]["boxes"] is None and dataset[3]["halves"].tolist() == [0.5, 2]
    batch = dataset.get_batch([0, 3, 1])
    assert [None if each is None else each.shape for each in batch["boxes"]] == [(3, 4), None, (0, 4)]
    assert [each.tolist() for each in batch["halves"]] == [[0, 1], [0.5, 2], [0, 1, 2, 3, 4]]


def test_bfloat16_arrays_are_bits_without_ml_dtypes(tmp_path: Path) -> None:
    try:
        import ml_dtypes  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        kind = np.dtype("<u2")
    else:
        kind = np.dtype(ml_dtypes.bfloat16)
    bits = bfloat16_bits(np.arange(6)).reshape(2, 3)
    with grainstore.Writer(tmp_path / "d.grain", {"x": "bfloat16[2,3]"}, keyed=False) as writer:
        writer.write(x=bits.view(kind))
        with pytest.raises(TypeError, match=r"convert it with \.astype\(ml_dtypes\.bfloat16\), of the package ml_dtypes"):
            writer.write(x=np.zeros((2, 3), np.float32))
        if kind == np.dtype("<u2"):
            with pytest.raises(TypeError, match="ml_dtypes"):
                writer.write(x=[[1, 2, 3], [4, 5, 6]])
    found = grainstore.open(tmp_path / "d.grain")[0]["x"]
    assert found.dtype == kind and np.array_equal(found.view("<u2"), bits)
