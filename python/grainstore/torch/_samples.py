"""Samples in the form that PyTorch needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.utils.data

from grainstore import Dataset, InvalidOption, TransformFailed
from grainstore._transforms import SampleTransform
from grainstore.torch._callers import is_collated_by_default

Sample = dict[str, Any]

def owned(sample: Sample) -> Sample:
    """The sample with writable copies of its arrays: tensors cannot be read-only, and PyTorch warns about such arrays."""
    for name, value in sample.items():
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            sample[name] = value.copy()
    return sample


def collatable(sample: Sample, schema: Mapping[str, str]) -> Sample:
    """The sample as ``default_collate`` takes it, with values as in ``tensors``: of types that it does not know,
    ``bfloat16`` arrays become tensors, times nanoseconds, and ``uint64`` numbers, which need not fit ``int64``, tensors."""
    for name, value in owned(sample).items():
        kind = schema.get(name, "")
        if kind.startswith("bfloat16[") and isinstance(value, np.ndarray):
            sample[name] = torch.from_numpy(value.view(np.int16)).view(torch.bfloat16)
        elif kind == "timestamp" and value is not None:
            sample[name] = int(value.astype("datetime64[ns]").astype(np.int64))
        elif kind == "uint64" and value is not None:
            sample[name] = torch.tensor(value, dtype=torch.uint64)
    return sample


def check_collatable(sample: Any, ordinal: Callable[[], int] | None = None) -> None:
    """Name the value of a dictionary that torch's own collate function is about to refuse without a name."""
    for name, value in sample.items() if isinstance(sample, dict) else ():
        if value is None:
            why = (
                f'has no value of "{name}", and PyTorch cannot collate None: fill it in a transform, leave the column out '
                "with dataset.select_columns([...]), or read the samples that have all values, such as "
                f'dataset.filter("{name} is present") for an attribute'
            )
        elif type(value) is int and not -(1 << 63) <= value < 1 << 63:
            why = (
                f'has {value} as "{name}", and PyTorch collates integers to int64: let the transform return '
                "torch.tensor(number, dtype=torch.uint64)"
            )
        else:
            continue
        if is_collated_by_default():
            found = None if ordinal is None else ordinal()
            key = "" if found is not None or "key" not in sample else f" (key {sample['key']!r})"
            raise InvalidOption(f"{'a sample' if found is None else f'sample {found}'}{key} {why}", ordinal=found)


def collated(samples: list[Any]) -> Any:
    """What PyTorch's own collate function makes of samples."""
    try:
        return torch.utils.data.default_collate(samples)
    except (OverflowError, RuntimeError, ValueError) as error:
        if "Overflow when unpacking" not in str(error):
            raise
        raise InvalidOption(
            "PyTorch collates integers to int64, and one is too large for that: let the transform return "
            "torch.tensor(number, dtype=torch.uint64)"
        ) from error


class TorchTransform(SampleTransform):
    """A transform that gets samples with writable arrays, and draws from a generator of PyTorch."""

    def prepared(self, sample: Any) -> Any:
        # Of an ImageFolder, it is a picture.
        return owned(sample) if isinstance(sample, dict) else sample

    def generator(self, draw_seed: int) -> torch.Generator:
        # As many bits as it takes: the upper half.
        return torch.Generator().manual_seed(draw_seed >> 64)


class CollateOwned:
    """A collate function that gets samples with writable arrays."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self._collate = collate

    def __call__(self, samples: list[Sample]) -> Any:
        return self._collate([owned(sample) for sample in samples])


def ordinal_of(dataset: Dataset, index: Any) -> int:
    """The ordinal of a sample that was read by this index or key."""
    if isinstance(index, (str, bytes)):
        ordinal = dataset.find(index)
        assert ordinal is not None, "it was read by this key"
        return ordinal
    return int(dataset.select([index]).ordinals[0])


def failed(dataset: Dataset, index: Any, what: str, error: Exception) -> TransformFailed:
    """The exception for a user function that raised for the sample at ``index`` of ``dataset``."""
    ordinal = ordinal_of(dataset, index)
    key = dataset._key_of(ordinal)
    named = "" if key is None else f' (key "{key.decode("utf-8", "backslashreplace")}")'
    message = f"sample {ordinal}{named}: {what} raised {type(error).__name__}: {error}"
    return TransformFailed(message, ordinal=ordinal, key=key)
