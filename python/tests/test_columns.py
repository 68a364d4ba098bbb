"""Columns of attributes: where they are stored, what is missing, what outlives what."""

from __future__ import annotations

import gc
from pathlib import Path

import made
import numpy as np
import pytest

import grainstore

NUMBERS = np.arange(made.COUNT)


def test_a_column_has_the_values_and_the_type_of_the_attribute(ds: grainstore.Dataset) -> None:
    for name, dtype, wanted in (
        ("label", np.int64, NUMBERS),
        ("weight", np.float32, NUMBERS / 8),
        ("good", np.bool_, NUMBERS % 3 == 0),
    ):
        column = ds.column(name)
        assert column.dtype == dtype
        assert not isinstance(column, np.ma.MaskedArray)
        np.testing.assert_array_equal(column, wanted)


def test_a_column_is_in_the_index_and_is_never_copied(ds: grainstore.Dataset) -> None:
    column = ds.column("label")
    assert np.shares_memory(column, ds.column("label"))
    assert np.shares_memory(column[100:200], ds[100:200].column("label"))
    assert not np.shares_memory(column, ds[:100].filter("label > 50").column("label"))


def test_nobody_writes_into_a_column(ds: grainstore.Dataset) -> None:
    for column in (ds.column("label"), ds[::2].column("label"), np.ma.getdata(ds.column("level"))):
        assert not column.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            column.flags.writeable = True


def test_missing_values_are_masked(ds: grainstore.Dataset) -> None:
    missing = NUMBERS % 13 == 1
    for view in (ds, ds[50:100], ds[::-3], ds.filter("label > 20"), ds.select([1, 1, 2])):
        column = view.column("level")
        assert isinstance(column, np.ma.MaskedArray)
        assert column.dtype == np.uint8
        np.testing.assert_array_equal(np.ma.getmaskarray(column), missing[view.ordinals])
        wanted = [made.sample(number)["level"] for number in view.ordinals]
        assert column.tolist() == wanted


def test_a_column_of_a_view_is_in_its_order(ds: grainstore.Dataset) -> None:
    for view in (ds[::-1], ds.select([5, 5, -1]), ds.filter("label > 100"), ds[7:9]):
        assert view.column("label").tolist() == view.ordinals.tolist()
        np.testing.assert_array_equal(view.column("good"), view.ordinals % 3 == 0)


def test_a_column_outlives_the_dataset(made_path: Path) -> None:
    ds = grainstore.open(made_path)
    columns = [ds.column("label"), ds[10:20].column("label"), ds[::-1].column("weight")]
    ds.close()
    del ds
    gc.collect()
    assert columns[0].tolist() == NUMBERS.tolist()
    assert columns[1].tolist() == list(range(10, 20))
    np.testing.assert_array_equal(columns[2], NUMBERS[::-1] / 8)


def test_only_attributes_are_columns(ds: grainstore.Dataset) -> None:
    for name in ("image", "nope", ""):
        with pytest.raises(grainstore.NoSuchName, match="label, weight, good, level") as raised:
            ds.column(name)
        assert isinstance(raised.value, KeyError)
    with pytest.raises(TypeError):
        ds.column(3)  # type: ignore[arg-type]
