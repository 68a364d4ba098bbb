"""What the transforms of map-style datasets draw, in the training process and in workers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from grainstore import Dataset
from grainstore._core import _draw_seed
from grainstore._global_draws import fingerprint, kept, seeded
from grainstore._loader import check_number
from grainstore.torch._samples import Sample, TorchTransform, ordinal_of

# Makes something of a sample: its index, the sample and its seed.
Make = Callable[[Any, Sample, int], Any]

# Indices into the tensor that workers share with the process that started them: the epoch, whether it was ever set, and
# how many samples were made in it, which several workers may count a little too low.
_EPOCH, _IS_SET, _MADE = range(3)

# Samples of a process that show whether a transform draws from global generators.
_TRIED = 16


class SampleDraws:
    """The seed and the epoch of a map-style dataset.

    A transform with a second parameter gets a generator of (seed, epoch, sample). For one that draws from the generators
    that a process shares, these are seeded likewise once an epoch was set. Before that they stay as PyTorch seeded them:
    a loop that does not know of epochs would have the same draws in each.
    """

    def __init__(self, seed: int) -> None:
        check_number("seed", seed, 0)
        self.seed = seed
        self._shared = torch.zeros(3, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        # Whether what is made draws from global generators: not known before it was tried in this process.
        self._draws_globally: bool | None = None
        self._transform = TorchTransform(len)

    @property
    def epoch(self) -> int:
        return int(self._shared[_EPOCH])

    def set_epoch(self, epoch: int) -> None:
        check_number("epoch", epoch, 0)
        self._shared[_EPOCH], self._shared[_IS_SET], self._shared[_MADE] = epoch, 1, 0

    def transform(self, function: Callable[..., Any]) -> TorchTransform:
        """The function, which may be another than last time."""
        if self._transform.function is not function:
            self._transform, self._draws_globally = TorchTransform(function), None
        return self._transform

    def make(
        self, dataset: Dataset, indices: Sequence[Any], read: Callable[[], list[Sample]], one: Make, *, with_generator: bool
    ) -> list[Any]:
        """What ``one`` makes of the samples. They may be read twice, as a function may change them."""
        samples = read()
        if not with_generator and not self._shared[_IS_SET]:
            return [one(index, sample, 0) for index, sample in zip(indices, samples, strict=True)]
        if self._draws_globally is False and not with_generator:
            before = fingerprint()
            made = [one(index, sample, 0) for index, sample in zip(indices, samples, strict=True)]
            if fingerprint() == before:
                return made
            self._draws_globally, samples = True, read()
        seeds = self._seeds(dataset, indices)
        if with_generator:
            self._warn_of_repeat(dataset, len(indices))
            return [one(*given) for given in zip(indices, samples, seeds, strict=True)]
        made = []
        with kept():
            for place, given in enumerate(zip(indices, samples, seeds, strict=True)):
                watch = self._draws_globally is not True and place < _TRIED
                result, drew = seeded(partial(one, *given), given[2], watch=watch)
                made.append(result)
                if drew:
                    self._draws_globally = True
        if self._draws_globally is None and made:
            self._draws_globally = False
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._shared.share_memory_()

    def _seeds(self, dataset: Dataset, indices: Sequence[Any]) -> list[int]:
        epoch = self.epoch
        if any(isinstance(index, (str, bytes)) for index in indices):
            ordinals = [ordinal_of(dataset, index) for index in indices]
        else:
            ordinals = dataset.select(indices).ordinals.tolist()
        return [_draw_seed(self.seed, epoch, ordinal) for ordinal in ordinals]

    def _warn_of_repeat(self, dataset: Dataset, count: int) -> None:
        """Warn once that samples of an epoch come again because set_epoch was not called."""
        made = int(self._shared[_MADE])
        self._shared[_MADE] = made + count
        if made <= len(dataset) < made + count and not self._shared[_IS_SET]:
            warnings.warn(
                "the transform gets the generators of epoch 0 again, so every epoch draws the same: call "
                "dataset.set_epoch(n) before each epoch",
                stacklevel=2,
            )
