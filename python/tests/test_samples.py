"""Single samples: by number, by key, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest

import grainstore


def test_a_sample_is_a_dictionary_of_its_fields_and_attributes(ds: grainstore.Dataset) -> None:
    for number in range(made.COUNT):
        made.assert_same(ds[number], made.sample(number))


def test_numbers_count_from_the_end_where_they_are_negative(ds: grainstore.Dataset) -> None:
    for number in (-1, -2, -made.COUNT):
        made.assert_same(ds[number], made.sample(number + made.COUNT))


@pytest.mark.parametrize("number", [made.COUNT, -made.COUNT - 1, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**70), 2**200])
def test_a_number_that_is_none_is_an_index_error(ds: grainstore.Dataset, number: int) -> None:
    with pytest.raises(grainstore.NoSuchOrdinal, match="300"):
        ds[number]
    with pytest.raises(IndexError):
        ds[5:10][number]


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_numbers_of_numpy_are_numbers(ds: grainstore.Dataset, kind: Any) -> None:
    assert ds[kind(7)]["label"] == 7
    assert ds[np.array(7, kind)[()]]["label"] == 7
    assert ds[kind(2) : kind(4)].ordinals.tolist() == [2, 3]


def test_true_and_false_are_one_and_zero_as_in_a_list(ds: grainstore.Dataset) -> None:
    assert (ds[True]["label"], ds[False]["label"]) == (1, 0)


@pytest.mark.parametrize("item", [1.0, None, [1], (1, 2), {1}, np.float64(1), bytearray(b"a"), object()])
def test_what_is_neither_number_nor_key_is_a_type_error(ds: grainstore.Dataset, item: Any) -> None:
    with pytest.raises(TypeError, match=type(item).__name__):
        ds[item]


def test_a_key_is_text_or_bytes(ds: grainstore.Dataset) -> None:
    for number in (0, 48, 49, 299):
        text = made.key(number)
        as_bytes = text.encode("utf-8", "surrogateescape")
        made.assert_same(ds[text], made.sample(number))
        made.assert_same(ds[as_bytes], made.sample(number))
        assert ds.find(text) == ds.find(as_bytes) == number
        assert text in ds
        assert as_bytes in ds


def test_a_key_that_is_no_utf8_comes_and_goes_as_file_names_do(made_path: Path) -> None:
    with grainstore.open(made_path, keys=True) as ds:
        assert ds[49]["key"] == "sample/00049\udcff"
        assert ds[ds[49]["key"]]["label"] == 49
        assert ds[b"sample/00049\xff"]["label"] == 49
        assert ds.get_batch([48, 49])["key"] == ["sample/00048", "sample/00049\udcff"]


def test_a_key_that_is_none_is_a_key_error(ds: grainstore.Dataset) -> None:
    for unknown in ("nope", b"nope", "", b"\xff", "sample/00049"):
        with pytest.raises(grainstore.NoSuchKey) as raised:
            ds[unknown]
        assert isinstance(raised.value, KeyError)
        assert raised.value.key == (unknown.encode() if isinstance(unknown, str) else unknown)
        assert unknown not in ds
        assert ds.find(unknown) is None


def test_only_text_and_bytes_are_looked_up(ds: grainstore.Dataset) -> None:
    for wrong in (3, None, 1.5):
        with pytest.raises(TypeError, match="key"):
            wrong in ds  # type: ignore[operator]
        with pytest.raises(TypeError, match="key"):
            ds.find(wrong)  # type: ignore[arg-type]


def test_samples_without_keys_have_none(plain: grainstore.Dataset) -> None:
    assert plain[3] == {"image": made.plain_image(3), "label": 3}
    with pytest.raises(grainstore.NoSuchKey):
        plain["a"]
    assert "a" not in plain
    assert plain.find("a") is None
    with pytest.raises(grainstore.NoSuchName):
        plain.keys()


def test_iteration_gives_every_sample_in_order(ds: grainstore.Dataset) -> None:
    for number, sample in enumerate(ds):
        made.assert_same(sample, made.sample(number))
    assert number == made.COUNT - 1


def test_several_samples_are_read_together_in_the_order_asked(ds: grainstore.Dataset) -> None:
    numbers = [7, -1, 7, 0, 299, 150]
    for found, number in zip(ds.__getitems__(numbers), numbers, strict=True):
        made.assert_same(found, made.sample(number % made.COUNT))
    assert ds.__getitems__([]) == []
    with pytest.raises(IndexError):
        ds.__getitems__([1, 300])


def test_the_key_is_an_item_where_it_is_asked_for(made_path: Path) -> None:
    with grainstore.open(made_path, keys=True) as ds:
        made.assert_same(ds[3], {"key": made.key(3)} | made.sample(3))
        made.assert_same(next(iter(ds[5:])), {"key": made.key(5)} | made.sample(5))
        assert ds.schema == made.SCHEMA
