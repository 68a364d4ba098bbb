"""Batches of what a transform returns: stacked member by member, or refused with the samples that differ."""

from __future__ import annotations

import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import grainstore
from grainstore import InvalidOption, Loader


class Point(NamedTuple):
    x: int
    name: str


@dataclass(frozen=True, slots=True)
class Example:
    pixels: Any
    inner: dict[str, Any]
    size: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if not isinstance(self.pixels, np.ndarray) or self.pixels.ndim != 1:
            raise ValueError("pixels of one sample are expected")


def batch_of(plain: grainstore.Dataset, transform: Any, count: int = 4) -> Any:
    [batch] = Loader(plain[10 : 10 + count], count, order="sequential", transform=transform)
    return batch


def test_containers_of_all_kinds_are_stacked_by_their_members(plain: grainstore.Dataset) -> None:
    def transform(sample: dict[str, Any]) -> Any:
        label = sample["label"]
        point = Point(label, str(label))
        return [point, (label, [label / 2]), OrderedDict(a=np.full(2, label)), (), [], b"%d" % label, 1j * label]

    point, (label, [half]), named, nothing, none, raw, imaginary = batch_of(plain, transform)
    assert type(point) is Point and point.x.tolist() == [10, 11, 12, 13] and point.name == ["10", "11", "12", "13"]
    assert (label.dtype, half.dtype, half.tolist()) == (np.int64, np.float64, [5, 5.5, 6, 6.5])
    assert named["a"].tolist() == [[label, label] for label in (10, 11, 12, 13)]
    assert (nothing, none, raw) == ((), [], [b"10", b"11", b"12", b"13"])
    assert imaginary.tolist() == [10j, 11j, 12j, 13j]


def test_dataclasses_are_stacked_by_their_fields(plain: grainstore.Dataset) -> None:
    def transform(sample: dict[str, Any]) -> Example:
        return Example(np.frombuffer(sample["image"], np.uint8), {"label": sample["label"]})

    batch = batch_of(plain, transform)
    assert type(batch) is Example
    assert (batch.pixels.shape, batch.inner["label"].tolist(), batch.size.tolist()) == ((4, 80), [10, 11, 12, 13], [0] * 4)


def test_values_of_which_some_are_missing_stay_a_list(plain: grainstore.Dataset) -> None:
    batch = batch_of(plain, lambda sample: {"some": sample["label"] if sample["label"] % 2 else None, "none": None})
    assert batch == {"some": [None, 11, None, 13], "none": [None] * 4}


def test_integers_too_large_for_a_sign_are_never_floats(plain: grainstore.Dataset) -> None:
    def large(sample: dict[str, Any]) -> Any:
        return sample["label"] if sample["label"] % 2 else 2**64 - 1 - sample["label"]

    labels = plain.column("label")[10:14].tolist()
    batch = batch_of(plain, large)
    assert batch.dtype == np.uint64 and len(set(label % 2 for label in labels)) == 2
    assert batch.tolist() == [large({"label": label}) for label in labels]
    with pytest.raises(InvalidOption, match=r"result\['id'\] has integers of uint64, and one below 0 for sample 1[0-3]"):
        batch_of(plain, lambda sample: {"id": large(sample) if sample["label"] % 2 == 0 else -1})


def test_masks_are_kept(plain: grainstore.Dataset) -> None:
    batch = batch_of(plain, lambda sample: np.ma.masked_equal(np.arange(10, 12), sample["label"]))
    assert np.ma.getmaskarray(batch).tolist() == [[True, False], [False, True], [False, False], [False, False]]


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        ({"a": (np.zeros(3),), "b": 1}, r"the shape of result\['a'\]\[0\] is \(2,\) for sample 10, and \(3,\) for sample 12"),
        ({"a": (np.zeros(2), 1), "b": 1}, r"the length of result\['a'\] is 1 for sample 10, and 2 for sample 12"),
        ({"a": (np.zeros(2),)}, r"the names of result is \['a', 'b'\] for sample 10, and \['a'\] for sample 12"),
        ({"a": (np.zeros(2),), "b": 1, "c": 1}, r"the names of result .* \['a', 'b', 'c'\] for sample 12"),
        ({"a": (np.zeros(2),), "b": "x"}, r"the type of result\['b'\] is int for sample 10, and str for sample 12"),
        ({"a": (np.zeros(2),), "b": np.zeros(1)}, r"the shape of result\['b'\] is \(\) for sample 10, and \(1,\) for sample 12"),
        ((1, 2), "the type of result is dict for sample 10, and tuple for sample 12"),
    ],
    ids=str,
)
def test_samples_of_different_form_are_refused_by_name(plain: grainstore.Dataset, odd: Any, what: str) -> None:
    def transform(sample: dict[str, Any]) -> Any:
        return odd if sample["label"] == 12 else {"a": (np.zeros(2),), "b": 1}

    with pytest.raises(InvalidOption, match=f"{what}.*collate=") as raised:
        batch_of(plain, transform)
    assert raised.value.ordinal == 12


def test_a_transform_that_returns_nothing_is_refused_by_sample(plain: grainstore.Dataset) -> None:
    with pytest.raises(InvalidOption, match="the transform returned None for sample 12") as raised:
        batch_of(plain, lambda sample: None if sample["label"] == 12 else sample)
    assert raised.value.ordinal == 12


def test_other_libraries_are_not_imported() -> None:
    assert "torch" not in sys.modules
