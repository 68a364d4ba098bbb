"""Samples by their number, for samplers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch.utils.data

from grainstore._loader import Source, check_functions, opened
from grainstore.torch._sample_draws import SampleDraws
from grainstore.torch._samples import Sample, check_collatable, collatable, failed, ordinal_of


class MapDataset(torch.utils.data.Dataset[Any]):
    """A map-style dataset: ``dataset[i]`` is a sample as a dictionary, or what ``transform`` makes of it.

    dataset: a result of ``grainstore.open``, a view of it, or a path (or several) to be opened.
    transform: a function of a sample that returns whatever is to be collated. Its exceptions become
        ``grainstore.TransformFailed``, which names the sample. If it has a second parameter, it gets a
        ``torch.Generator`` seeded by ``seed``, the epoch and the sample alone.

    ``DataLoader`` requests a whole batch at once, and its samples are read together. Slices are views. Arrays are
    writable copies; without a ``transform``, those of ``bfloat16`` and numbers of ``uint64`` are tensors and times
    are nanoseconds, as PyTorch collates none of them. A value that a sample lacks is ``None``, which ``DataLoader`` cannot collate
    by itself: that raises ``grainstore.InvalidOption``, which names sample and column. Fill it in ``transform``.

    Call ``set_epoch`` before each epoch, and random transforms can be repeated with any number of workers and ranks, those
    too that draw from the generators of ``random``, ``numpy.random`` or PyTorch. Without it these draw as in any other
    dataset of PyTorch, and a second parameter is the same generator in each epoch, of which a warning is issued.
    """

    def __init__(self, dataset: Source, transform: Callable[..., Any] | None = None, *, seed: int = 0) -> None:
        check_functions(transform)
        self.dataset = opened(dataset)
        self.transform = transform
        self._draws = SampleDraws(seed)

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, here and in the workers of every ``DataLoader``; of slices, too."""
        self._draws.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = MapDataset(self.dataset[index], self.transform)
            part._draws = self._draws
            return part
        return self._made([index], lambda: [self.dataset[index]])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples with these numbers, read together."""
        return self._made(indices, lambda: self.dataset.__getitems__(indices))

    def __repr__(self) -> str:
        return f"<grainstore.torch.MapDataset of {self.dataset!r}>"

    def _made(self, indices: Sequence[Any], read: Callable[[], list[Sample]]) -> list[Any]:
        if self.transform is None:
            schema = self.dataset.schema
            return self._checked(indices, [collatable(sample, schema) for sample in read()])
        transform = self._draws.transform(self.transform)

        def one(index: Any, sample: Sample, draw_seed: int) -> Any:
            try:
                return transform(sample, draw_seed)
            except Exception as error:
                raise failed(self.dataset, index, "the transform", error) from error

        made = self._draws.make(self.dataset, indices, read, one, with_generator=transform.takes_generator)
        return self._checked(indices, made)

    def _checked(self, indices: Sequence[Any], samples: list[Any]) -> list[Any]:
        for index, sample in zip(indices, samples, strict=True):
            check_collatable(sample, partial(ordinal_of, self.dataset, index))
        return samples
