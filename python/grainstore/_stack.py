"""Batches of what a transform returns: the values of many samples as one array, member by member."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def stack(samples: Sequence[Any]) -> Any:
    """Stack samples of one shape: dictionaries and tuples by their members, arrays and numbers into an array.

    If a sample lacks a value, the result is a list.
    """
    first = samples[0]
    if any(sample is None for sample in samples):
        return list(samples)
    if isinstance(first, dict):
        return {name: stack([sample[name] for sample in samples]) for name in first}
    if isinstance(first, tuple):
        return _tuple_like(first, [stack(list(members)) for members in zip(*samples, strict=True)])
    if any(isinstance(sample, np.ma.MaskedArray) for sample in samples):
        return np.ma.stack(samples)
    if isinstance(first, (np.ndarray, np.generic, bool, int, float)):
        return np.stack([np.asarray(sample) for sample in samples])
    return list(samples)


def _tuple_like(model: tuple[Any, ...], members: list[Any]) -> tuple[Any, ...]:
    """A tuple, or a named tuple like ``model``."""
    return type(model)(*members) if hasattr(model, "_fields") else tuple(members)
