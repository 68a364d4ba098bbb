"""Values that are written: every type and its limits. What does not fit is an error, never another value."""

from __future__ import annotations

import array
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grainstore

INTEGERS = {
    f"{sign}int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for bits in (8, 16, 32, 64)
    for sign in ("", "u")
}
BYTES = np.arange(24, dtype=np.uint8)


def round_trip(folder: Path, kind: str, value: Any) -> Any:
    """The value as it is read from a sample and, the same, from a batch. Where it is refused, nothing is left."""
    path = folder / "d.grain"
    try:
        with grainstore.Writer(path, {"value": kind, "other": "bytes"}, keyed=False) as writer:
            writer.write(value=value, other=b"other")
    except BaseException:
        assert os.listdir(folder) == []
        raise
    with grainstore.open(path) as ds:
        found = ds[0]["value"]
        assert ds[0]["other"] == b"other"
        column = ds.get_batch([0])["value"]
        again = column.tolist()[0] if isinstance(column, (grainstore.Buffers, np.ndarray)) else column[0]
        np.testing.assert_equal(again, found.tolist() if isinstance(found, np.ndarray) else found)
    return found


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("place", [0, 1])
def test_integers_reach_to_their_limits(tmp_path: Path, kind: str, place: int) -> None:
    limit = INTEGERS[kind][place]
    beyond = limit + (1 if place else -1)
    with pytest.raises(OverflowError, match=f"value: {beyond} does not fit {kind}"):
        round_trip(tmp_path, kind, beyond)
    with pytest.raises(OverflowError, match=kind):
        round_trip(tmp_path, kind, limit * 2**64 + beyond)
    found = round_trip(tmp_path, kind, limit)
    assert type(found) is int
    assert found == limit


@pytest.mark.parametrize("value", [np.int8(3), np.uint64(3), np.array(3)])
def test_integers_of_numpy_are_integers(tmp_path: Path, value: Any) -> None:
    assert round_trip(tmp_path, "int16", value) == 3


@pytest.mark.parametrize("value", [1.0, np.float32(1), True, np.True_, "1", b"1", [1], 1j, np.array([1])])
def test_an_integer_is_not_made_of_something_else(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match="value: expected int64"):
        round_trip(tmp_path, "int64", value)


@pytest.mark.parametrize("value", [0, 1, 1.0, "True", None.__class__, np.int8(1)])
def test_a_bool_is_not_made_of_something_else(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match="value: expected bool"):
        round_trip(tmp_path, "bool", value)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_bools_are_bools(tmp_path: Path, value: Any) -> None:
    assert round_trip(tmp_path, "bool", value) is bool(value)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.1, -0.0, 3, float("inf"), float("-inf"), float("nan"), np.float16(0.5), np.float32(2)])
def test_floats_are_rounded_to_their_type(tmp_path: Path, kind: str, value: Any) -> None:
    found = round_trip(tmp_path, kind, value)
    assert type(found) is float
    np.testing.assert_array_equal(np.array(found), np.array(value).astype(kind).astype(np.float64))


@pytest.mark.parametrize("value", [True, "1.5", b"1", [1.5], 1j, None.__class__])
def test_a_float_is_not_made_of_something_else(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match="value: expected float32"):
        round_trip(tmp_path, "float32", value)


def test_an_integer_that_no_float_reaches_is_an_overflow(tmp_path: Path) -> None:
    with pytest.raises(OverflowError, match="float64"):
        round_trip(tmp_path, "float64", 10**400)


@pytest.mark.parametrize("kind", [*INTEGERS, "bool", "float32", "float64", "bytes", "str", "float32[2,2]"])
def test_every_value_may_be_missing(tmp_path: Path, kind: str) -> None:
    with grainstore.Writer(tmp_path / "d.grain", {"value": kind, "other": "bytes"}, keyed=False) as writer:
        writer.write(value=None, other=b"")
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert ds[0]["value"] is None


@pytest.mark.parametrize(
    "value",
    [
        BYTES.tobytes(),
        bytearray(BYTES.tobytes()),
        memoryview(BYTES.tobytes()),
        memoryview(BYTES.tobytes()).cast("c"),
        array.array("B", BYTES.tobytes()),
        BYTES,
        BYTES.reshape(2, 3, 4),
        BYTES.reshape(4, 6)[:, ::2],
        BYTES.reshape(4, 6).T,
        BYTES[::-1],
        memoryview(BYTES.tobytes())[::3],
        np.zeros(0, np.uint8),
        np.zeros((3, 0), np.uint8),
        b"",
    ],
    ids=lambda value: type(value).__name__,
)
def test_payloads_are_buffers_of_bytes(tmp_path: Path, value: Any) -> None:
    wanted = value.tobytes() if isinstance(value, (np.ndarray, memoryview)) else bytes(value)
    assert round_trip(tmp_path, "bytes", value) == wanted


@pytest.mark.parametrize("value", ["text", 3, [1, 2], BYTES.astype(np.int32), BYTES.astype(np.float32), object()])
def test_other_things_are_no_payloads(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match="value: expected bytes"):
        round_trip(tmp_path, "bytes", value)


@pytest.mark.parametrize("value", ["", "é №\0\U0001f600", "x" * 100_000])
def test_text_is_text(tmp_path: Path, value: str) -> None:
    assert round_trip(tmp_path, "str", value) == value


@pytest.mark.parametrize("value", [b"bytes", 3, ["a"]])
def test_other_things_are_no_text(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match="value: expected str"):
        round_trip(tmp_path, "str", value)


def test_text_that_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        round_trip(tmp_path, "str", "\ud800")


@pytest.mark.parametrize("kind", [*INTEGERS, "float32", "float64"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3), (0,), (2, 0)])
def test_arrays_have_a_type_and_a_shape(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    value = np.arange(np.prod(shape), dtype=kind).reshape(shape)
    found = round_trip(tmp_path, f"{kind}[{','.join(map(str, shape))}]", value)
    assert (found.dtype, found.shape, found.flags.writeable) == (value.dtype, shape, True)
    np.testing.assert_array_equal(found, value)


def test_arrays_that_lie_otherwise_are_written_in_their_order(tmp_path: Path) -> None:
    value = np.arange(6, dtype=np.float32).reshape(3, 2).T
    np.testing.assert_array_equal(round_trip(tmp_path, "float32[2,3]", value), value)


def test_lists_of_numbers_are_arrays(tmp_path: Path) -> None:
    assert round_trip(tmp_path, "int16[2,2]", [[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("value", [np.zeros((2, 3)), np.zeros((2, 3), np.int32), np.zeros((2, 3), np.float16)])
def test_arrays_of_another_type_are_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match=f"expected an array of float32, found one of {value.dtype}"):
        round_trip(tmp_path, "float32[2,3]", value)


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 3, 1), (), (2, 4), (0, 3)])
def test_arrays_of_another_shape_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(grainstore.InvalidSample, match="shape"):
        round_trip(tmp_path, "float32[2,3]", np.zeros(shape, np.float32))


@pytest.mark.parametrize("value", ["ab", b"ab", [[1, 2], [3]], ["a", "b"], object()])
def test_other_things_are_no_arrays(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match="expected (an array|numbers) of float32"):
        round_trip(tmp_path, "float32[2]", value)


@pytest.mark.parametrize("value", [[1, 300], [-129, 0]])
def test_numbers_that_do_not_fit_an_array_are_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(OverflowError, match="value: a number does not fit int8"):
        round_trip(tmp_path, "int8[2]", value)
