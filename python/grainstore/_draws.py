"""What a transform draws for a sample, by the sample alone: the same for any number of threads, workers and ranks.

The seed of a sample is `draw_seed` of order.md, DRW-1. A generator made from it is given to a transform that takes one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from grainstore._core import Batch, _draw_seed


def takes_generator(transform: Callable[..., Any]) -> bool:
    """Whether a transform has a second parameter, which gets a generator.

    A parameter that has a default gets one only if it is named ``generator``.
    """
    try:
        parameters = list(inspect.signature(transform).parameters.values())
    except (TypeError, ValueError):
        # A function of a compiled module, of which Python knows nothing.
        return False
    positional = [given for given in parameters if given.kind in (given.POSITIONAL_ONLY, given.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 and (positional[1].default is inspect.Parameter.empty or positional[1].name == "generator")


def draw_seeds(seed: int, epoch: int, batch: Batch) -> list[int]:
    """The seed of each sample of a batch: 128 bits."""
    ordinals = batch.ordinals.tolist()
    repeats = getattr(batch, "repeats", None)
    return [
        _draw_seed(seed, epoch, ordinal, repeat)
        for ordinal, repeat in zip(ordinals, [0] * len(ordinals) if repeats is None else repeats.tolist(), strict=True)
    ]


def numpy_generator(draw_seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(draw_seed))
