"""Datasets that the tests read, and what reading them has to give."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

import grainstore

COUNT = 300
SCHEMA = {
    "image": "bytes",
    "text": "str",
    "vector": "float32[2,3]",
    "nothing": "int16[0,4]",
    "label": "int64",
    "weight": "float32",
    "good": "bool",
    "level": "uint8",
}


def key(number: int) -> str:
    """The key of sample `number`; now and then one that is no UTF-8."""
    return f"sample/{number:05}" + ("\udcff" if number % 50 == 49 else "")


def sample(number: int) -> dict[str, Any]:
    """Sample `number` of a dataset that `write` makes; `text`, `vector` and `level` are missing here and there."""
    return {
        "image": bytes((number + place) % 251 for place in range(number * 37 % 200)),
        "text": None if number % 7 == 3 else f"№{number}",
        "vector": None if number % 11 == 5 else np.arange(number, number + 6, dtype=np.float32).reshape(2, 3),
        "nothing": np.zeros((0, 4), np.int16),
        "label": number,
        "weight": number / 8,
        "good": number % 3 == 0,
        "level": None if number % 13 == 1 else number % 256,
    }


def write(path: str | PathLike[str], start: int = 0, stop: int = COUNT, **options: Any) -> None:
    """Write samples `start` to `stop`."""
    with grainstore.Writer(path, SCHEMA, metadata={"class_names": ["cat", "dog"]}, **options) as writer:
        for number in range(start, stop):
            writer.write(key=key(number), **sample(number))


def write_plain(path: str | PathLike[str], count: int, **options: Any) -> None:
    """Write a dataset of one field and one attribute, never missing: `image` is the text of `label` 20 times."""
    with grainstore.Writer(path, {"image": "bytes", "label": "int64"}, keyed=False, **options) as writer:
        writer.write_batch(image=[plain_image(label) for label in range(count)], label=range(count))


def plain_image(label: int) -> bytes:
    return label.to_bytes(4, "little") * 20


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Whether two samples have the same names in the same order, and the same values of the same types."""
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        if isinstance(value, np.ndarray):
            assert isinstance(found[name], np.ndarray), name
            assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
            np.testing.assert_array_equal(found[name], value)
        else:
            assert type(found[name]) is type(value), name
            assert found[name] == value, name
