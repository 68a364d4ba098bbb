"""Weights by which an epoch draws the samples of a dataset or view."""

from __future__ import annotations

from typing import Any

import numpy as np

from grainstore._core import Dataset, _Weights
from grainstore._errors import InvalidOption


def weights_of(dataset: Dataset, weights: Any, num_samples: int | None) -> _Weights | None:
    """The weights of the samples of a view, checked; ``None`` if none are given."""
    if weights is None:
        if num_samples is not None:
            raise InvalidOption("num_samples is how many samples an epoch draws by weights, and weights is missing")
        return None
    if isinstance(weights, _Weights):
        return weights
    if isinstance(weights, np.ma.MaskedArray) and np.ma.is_masked(weights):
        raise InvalidOption("weights: some are masked, and a sample that should not be drawn has the weight 0")
    array = np.asarray(weights)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise TypeError(f"weights is an array of numbers, one per sample, not {array.ndim} dimensions of {array.dtype}")
    if num_samples is None:
        num_samples = len(dataset)
    if not isinstance(num_samples, int) or isinstance(num_samples, bool):
        raise TypeError(f"num_samples is an integer, not {type(num_samples).__name__}")
    if not 1 <= num_samples <= 1 << 40:
        raise InvalidOption(f"num_samples is {num_samples}, expected 1 to {1 << 40}")
    return dataset._weights(np.ascontiguousarray(array, dtype=np.float64), num_samples)
