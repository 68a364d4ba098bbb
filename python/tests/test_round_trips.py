"""Values of every type through the formats of ``export`` and back: equal, of the same type or one that is documented, and
where a format cannot hold them, refused before anything is written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grainstore

INTEGERS: dict[str, list[Any]] = {
    **{f"int{bits}": [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, None] for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": [2**bits - 1, 0, None] for bits in (8, 16, 32)},
    "uint64": [2**63 - 1, 0, None],
}
FLOATS: dict[str, list[Any]] = {
    "float16": [0.5, -0.0, 65504.0, 2.0**-24, None],
    "bfloat16": [0.5, -0.0, 2.0**100, None],
    "float32": [0.1, -0.0, 2.0**100, 2.0**-149, None],
    "float64": [0.1, -0.0, 1e308, 5e-324, None],
}
OTHERS: dict[str, list[Any]] = {
    "bool": [True, False, None],
    "timestamp": [0, -1, 1_700_000_000_123_456_789, None],
    "category": ["a", "größe", 'x, "y"\n', "", "123", "true", None],
}
ARRAYS: dict[str, list[Any]] = {
    "bytes": [b"", b"\0x", None],
    "str": ["", "größe\n", None],
    "float32[3]": [np.array([0.1, -0.0, math.nan], np.float32), None],
    "float32[]": [np.zeros(0, np.float32), np.ones(3, np.float32), None],
    "float32[,4]": [np.zeros((0, 4), np.float32), np.ones((2, 4), np.float32), None],
    "float16[]": [np.array([0.5, -2], np.float16), np.zeros(0, np.float16), None],
    "float64[]": [np.array([0.1]), np.zeros(0), None],
    "int64[]": [np.array([2**63 - 1, -1]), np.zeros(0, np.int64), None],
    "uint8[]": [np.array([1, 255], np.uint8), None],
    "int32[2,2]": [np.arange(4, dtype=np.int32).reshape(2, 2), None],
}
WIDER = {**dict.fromkeys(INTEGERS, "int64"), **dict.fromkeys(FLOATS, "float64"), "timestamp": "int64"}
# What a type becomes on the way; itself where nothing is said. Bytes of arrays are little-endian.
BECOMES = {
    "folder": {**WIDER, "category": "str"},
    "tar": {**WIDER, "str": "bytes", **{kind: "bytes" for kind in ARRAYS if "[" in kind}},
    "tfrecord": {
        **dict.fromkeys([*INTEGERS, "bool", "timestamp"], "int64"),
        **dict.fromkeys(["float16", "bfloat16"], "float32"),
        **dict.fromkeys(["category", "str", "float16[]", "float64[]", "uint8[]", "int32[2,2]"], "bytes"),
        # A list has no shape.
        "float32[,4]": "float32[]",
    },
    "parquet": {},
}
SUFFIXES = {"folder": "", "tar": ".tar", "tfrecord": ".tfrecord", "parquet": ".parquet"}


def written(path: Path, kind: str, values: list[Any]) -> Path:
    with grainstore.Writer(path, {"data": "bytes", "value": kind}, keyed=True) as writer:
        for number, value in enumerate(values):
            writer.write(key=f"k{number}", data=b"%d" % number, value=value)
    return path


def plain(value: Any, kind: str) -> Any:
    """What a value of a dataset is compared by: its bits, without its shape."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, np.datetime64):
        value = int(value.astype("datetime64[ns]").astype(np.int64))
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return math.copysign(1, value) * 0.5 if value == 0 and "float" in kind else value


def carried(tmp_path: Path, kind: str, values: list[Any], form: str) -> tuple[str, list[Any], list[Any]]:
    """The type that came back, the values that went, and those that came."""
    tmp_path.mkdir(exist_ok=True)
    source = written(tmp_path / "source.grain", kind, values)
    out = tmp_path / f"out{SUFFIXES[form]}"
    grainstore.export(source, out, to=form)
    table: dict[str, Any] = {"labels": out / "attributes.jsonl"} if form == "folder" else {}
    grainstore.convert(out, tmp_path / "back.grain", order="source", **table)
    with grainstore.open(source) as went, grainstore.open(tmp_path / "back.grain") as came:
        keys = [f"k{number}" for number in range(len(values))]
        found = came.schema["value"]
        return found, [plain(went[key]["value"], kind) for key in keys], [plain(came[key]["value"], found) for key in keys]


@pytest.mark.parametrize("form", SUFFIXES)
@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS, *OTHERS])
def test_attributes_come_back_with_their_values(tmp_path: Path, kind: str, form: str) -> None:
    values = {**INTEGERS, **FLOATS, **OTHERS}[kind]
    if (kind, form) == ("float64", "tfrecord"):
        with pytest.raises(grainstore.Error, match=r'"value" is 0\.1, a feature holds 32-bit floats'):
            carried(tmp_path, kind, values, form)
        assert not (tmp_path / "out.tfrecord").exists()
        return
    if (kind, form) == ("category", "tar"):
        source = written(tmp_path / "source.grain", kind, values)
        grainstore.export(source, tmp_path / "out.tar", to="tar")
        grainstore.convert(tmp_path / "out.tar", tmp_path / "back.grain", order="source")
        with grainstore.open(tmp_path / "back.grain") as back:
            # A text that comes once may be a caption: the document is kept.
            assert back["k1"]["json"] == '{"value":"größe"}'.encode()
        found, went, came = carried(tmp_path / "often", kind, values * 4, form)
        assert (found, came) == ("category", went)
        return
    found, went, came = carried(tmp_path, kind, values, form)
    assert found == BECOMES[form].get(kind, kind)
    assert came == went


@pytest.mark.parametrize("form", ["tar", "tfrecord", "parquet"])
@pytest.mark.parametrize("kind", ARRAYS)
def test_fields_come_back_with_their_bytes(tmp_path: Path, kind: str, form: str) -> None:
    found, went, came = carried(tmp_path, kind, ARRAYS[kind], form)
    assert found == BECOMES[form].get(kind, kind)
    assert came == went


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("kind", FLOATS)
def test_numbers_that_json_does_not_have_are_refused(tmp_path: Path, kind: str, value: float) -> None:
    source = written(tmp_path / "source.grain", kind, [1.0, value])
    for form in ("folder", "tar"):
        with pytest.raises(grainstore.Error, match='sample 1 .*its "value" is (NaN|-?inf), JSON has finite'):
            grainstore.export(source, tmp_path / "out", to=form)
        assert not (tmp_path / "out").exists()
    found, went, came = carried(tmp_path / "parquet", kind, [value, 1.0], "parquet")
    assert (found, repr(came)) == (kind, repr(went))


@pytest.mark.parametrize("form", SUFFIXES)
def test_an_integer_of_64_bits_without_a_sign_is_never_another_number(tmp_path: Path, form: str) -> None:
    values = [2**64 - 1, 0]
    if form in ("parquet", "folder"):
        assert carried(tmp_path, "uint64", values, form) == ("uint64", values, values)
    elif form == "tar":
        with pytest.raises(KeyError, match="value"):
            carried(tmp_path, "uint64", values, form)
        with grainstore.open(tmp_path / "back.grain") as came:
            assert came["k0"]["json"] == b'{"value":18446744073709551615}'
    else:
        with pytest.raises(grainstore.Error, match="18446744073709551615.*(does not fit an int64|at most)"):
            carried(tmp_path, "uint64", values, form)
