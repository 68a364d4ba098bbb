"""Samples on their way into PyTorch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import grainstore
from grainstore import Dataset, TransformFailed

Sample = dict[str, Any]
Path = str | os.PathLike[str]
# An open dataset or a view of one; or what grainstore.open takes.
Source = Dataset | Path | Iterable[Path]


def opened(source: Source) -> Dataset:
    """The dataset, opened where it is not yet."""
    return source if isinstance(source, Dataset) else grainstore.open(source)


def owned(sample: Sample) -> Sample:
    """The sample with arrays of its own: there are no read-only tensors, and PyTorch warns of such arrays."""
    for name, value in sample.items():
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            sample[name] = value.copy()
    return sample


class OnOwned:
    """A transform of samples that have arrays of their own."""

    def __init__(self, transform: Callable[[Sample], Any]) -> None:
        self._transform = transform

    def __call__(self, sample: Sample) -> Any:
        return self._transform(owned(sample))


class CollateOwned:
    """A function that makes a batch of samples, which have arrays of their own."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self._collate = collate

    def __call__(self, samples: list[Sample]) -> Any:
        return self._collate([owned(sample) for sample in samples])


def failed(dataset: Dataset, index: Any, what: str, error: Exception) -> TransformFailed:
    """What is raised where a function of the user's raised for the sample at ``index`` of ``dataset``."""
    if isinstance(index, (str, bytes)):
        ordinal = dataset.find(index)
        assert ordinal is not None, "it was read by this key"
    else:
        ordinal = int(dataset.select([index]).ordinals[0])
    key = dataset._key_of(ordinal)
    named = "" if key is None else f' (key "{key.decode("utf-8", "backslashreplace")}")'
    message = f"sample {ordinal}{named}: {what} raised {type(error).__name__}: {error}"
    return TransformFailed(message, ordinal=ordinal, key=key)
