"""pyarrow, polars and DuckDB read keys and attributes of a dataset through Arrow's C data interface."""

import gc
import pathlib
import re

import duckdb
import numpy as np
import polars
import pyarrow
import pytest

import grainstore

ROOT = pathlib.Path(__file__).parents[2]
SCHEMA = {
    "data": "bytes",
    "label": "int64",
    "small": "uint8",
    "level": "int16",
    "weight": "float32",
    "ratio": "float64",
    "half": "float16",
    "brain": "bfloat16",
    "good": "bool",
    "time": "timestamp",
    "split": "category",
}
COUNT = 100


def row(number, splits=("train", "val", "größe")):
    return {
        "data": b"x",
        "label": number - 50,
        "small": number,
        "level": None if number % 13 == 1 else number * 3,
        "weight": number / 8,
        "ratio": number / 3,
        "half": np.float16(number / 4),
        "brain": float(number),
        "good": None if number % 7 == 2 else number % 3 == 0,
        "time": np.datetime64(1_700_000_000_000_000_000 + number, "ns"),
        "split": None if number % 11 == 5 else splits[number % len(splits)],
    }


def write(path, numbers, key="sample/{}", **options):
    with grainstore.Writer(path, SCHEMA) as writer:
        for number in numbers:
            writer.write(key=key.format(number), **row(number, **options))
    return path


@pytest.fixture
def ds(tmp_path):
    with grainstore.open(write(tmp_path / "d.grain", range(COUNT))) as dataset:
        yield dataset


def expected(numbers, **options):
    rows = [{"key": f"sample/{number}", **row(number, **options)} for number in numbers]
    for each in rows:
        del each["data"]
        each["half"] = float(each["half"])
        each["time"] = int(each["time"].astype(np.int64))
    return rows


def found(table):
    """The rows of an Arrow table; times as nanoseconds, as Python's own times are less exact."""
    place = table.schema.get_field_index("time")
    return table.set_column(place, "time", table["time"].cast(pyarrow.int64())).to_pylist()


def test_a_table_has_the_keys_and_attributes_with_their_types(ds):
    table = pyarrow.table(ds)
    assert {field.name: str(field.type) for field in table.schema} == {
        "key": "large_string",
        "label": "int64",
        "small": "uint8",
        "level": "int16",
        "weight": "float",
        "ratio": "double",
        "half": "halffloat",
        "brain": "float",
        "good": "bool",
        "time": "timestamp[ns]",
        "split": "dictionary<values=large_string, indices=uint8, ordered=0>",
    }
    table.validate(full=True)
    assert found(table) == expected(range(COUNT))
    assert [field.name for field in table.schema if field.nullable] == ["level", "good", "split"]
    assert pyarrow.schema(ds) == table.schema
    assert table["level"].null_count == sum(number % 13 == 1 for number in range(COUNT))


def test_a_view_of_some_columns_has_the_keys_and_these(ds):
    table = pyarrow.table(ds[:10].select_columns(["level", "label"]))
    assert table.to_pylist() == [{name: row[name] for name in ("key", "label", "level")} for row in expected(range(10))]
    assert pyarrow.schema(ds.select_columns(["level", "label"])).names == ["key", "label", "level"]


def test_views_give_their_rows(ds):
    views = {
        "slice": (ds[17:64], range(17, 64)),
        "slice of a slice": (ds[17:64][5:9], range(22, 26)),
        "steps": (ds[::-3], range(99, -1, -3)),
        "chosen": (ds.select([5, 5, 99, 0]), [5, 5, 99, 0]),
        "filter": (ds.filter("label >= 30"), range(80, 100)),
        "nothing": (ds[4:4], []),
    }
    for name, (view, numbers) in views.items():
        table = pyarrow.table(view)
        table.validate(full=True)
        assert found(table) == expected(numbers), name


def test_numbers_of_the_index_are_not_copied(ds):
    for name in ("label", "small", "level", "weight", "ratio", "half", "time"):
        column = pyarrow.table(ds)[name].chunk(0)
        values = np.frombuffer(column.buffers()[1], np.uint8)
        if name != "level":  # NumPy's column of it is a copy
            assert np.shares_memory(values, ds.column(name).view(np.uint8)), name
        again = pyarrow.table(ds[10:20])[name].chunk(0)
        assert again.buffers()[1].address == column.buffers()[1].address and again.offset == 10, name
        if name == "level":
            assert again.buffers()[0].address == column.buffers()[0].address


def test_a_table_outlives_the_dataset(tmp_path):
    ds = grainstore.open(write(tmp_path / "d.grain", range(COUNT)))
    table, part = pyarrow.table(ds), pyarrow.table(ds[3:7])
    ds.close()
    del ds
    gc.collect()
    assert found(table) == expected(range(COUNT))
    assert found(part) == expected(range(3, 7))
    with pytest.raises(grainstore.Closed):
        pyarrow.table(grainstore_closed(tmp_path))


def grainstore_closed(folder):
    ds = grainstore.open(folder / "d.grain")
    ds.close()
    return ds


def test_several_datasets_are_several_batches_with_the_same_categories(tmp_path):
    first = write(tmp_path / "1.grain", range(30), splits=("b", "a"))
    second = write(tmp_path / "2.grain", range(30, 50), splits=("c", "a"))
    ds = grainstore.open([first, second])
    table = pyarrow.table(ds)
    table.validate(full=True)
    assert [len(batch) for batch in table.to_batches()] == [30, 20]
    rows = expected(range(30), splits=("b", "a")) + expected(range(30, 50), splits=("c", "a"))
    assert found(table) == rows
    assert table["split"].chunk(1).dictionary.to_pylist() == ["b", "a", "c"]
    assert found(pyarrow.table(ds[28:33])) == rows[28:33]
    assert found(pyarrow.table(ds.select([40, 2, 41]))) == [rows[40], rows[2], rows[41]]


def test_many_categories_and_keys_that_are_no_text(tmp_path):
    with grainstore.Writer(tmp_path / "d.grain", {"data": "bytes", "group": "category"}) as writer:
        for number in range(400):
            writer.write(key=f"{number}\udcff", data=b"", group=None if number == 7 else f"group {number}")
    table = pyarrow.table(grainstore.open(tmp_path / "d.grain"))
    table.validate(full=True)
    assert table.schema.field("key").type == pyarrow.large_binary()
    assert table.schema.field("group").type.index_type == pyarrow.uint16()
    assert table["key"].to_pylist()[:2] == [b"0\xff", b"1\xff"]
    assert table["group"].to_pylist() == [None if number == 7 else f"group {number}" for number in range(400)]


def test_an_empty_stream_and_one_that_is_not_read(ds):
    reader = pyarrow.RecordBatchReader.from_stream(ds)
    first = reader.read_next_batch()
    with pytest.raises(StopIteration):
        reader.read_next_batch()
    del reader
    assert len(first) == COUNT
    ds.__arrow_c_stream__()
    ds.__arrow_c_schema__()
    gc.collect()


def test_polars_reads_it(ds):
    frame = polars.DataFrame(ds)
    assert frame.shape == (COUNT, 11)
    assert frame["key"].to_list() == [f"sample/{number}" for number in range(COUNT)]
    assert frame["level"].to_list() == [row(number)["level"] for number in range(COUNT)]
    assert frame["good"].to_list() == [row(number)["good"] for number in range(COUNT)]
    assert frame["split"].cast(polars.String).to_list() == [row(number)["split"] for number in range(COUNT)]
    assert frame["time"].dtype == polars.Datetime("ns")
    assert frame["brain"].to_list() == [float(number) for number in range(COUNT)]
    part = polars.DataFrame(ds[20:30])
    assert part["label"].to_list() == list(range(-30, -20))
    assert part["level"].to_list() == [row(number)["level"] for number in range(20, 30)]


def test_duckdb_queries_it(tmp_path, ds):
    plain = {name: kind for name, kind in SCHEMA.items() if name != "half"}
    with grainstore.Writer(tmp_path / "plain.grain", plain) as writer:
        for number in range(COUNT):
            each = row(number)
            del each["half"]
            writer.write(key=f"sample/{number}", **each)
    rows = grainstore.open(tmp_path / "plain.grain")
    answer = duckdb.sql("select split, count(*), sum(level) from rows where label >= 0 group by split")
    wanted = {}
    for number in range(50, COUNT):
        each = row(number)
        count, total = wanted.get(each["split"], (0, 0))
        wanted[each["split"]] = (count + 1, total + (each["level"] or 0))
    assert {split: (count, int(total)) for split, count, total in answer.fetchall()} == wanted
    assert duckdb.sql("select key, good from rows where small = 3").fetchall() == [("sample/3", True)]
    # As the page says: DuckDB has no 16-bit floats.
    with pytest.raises(duckdb.NotImplementedException):
        duckdb.sql("select label from ds").fetchall()
    without = pyarrow.table(ds).drop_columns("half")
    assert duckdb.sql("select max(label) from without").fetchall() == [(49,)]


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/python/arrow.md"
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block, str(page), "exec"), names)
