"""Samples by their number, for samplers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch.utils.data

from grainstore._loader import check_functions
from grainstore.torch._samples import Sample, Source, failed, opened, owned


class MapDataset(torch.utils.data.Dataset[Any]):
    """A map-style dataset: ``dataset[i]`` is a sample as a dictionary, or what ``transform`` makes of it.

    dataset: a result of ``grainstore.open``, a view of it, or a path (or several) to be opened.
    transform: a function of a sample that returns whatever is to be collated. Its exceptions become
        ``grainstore.TransformFailed``, which names the sample.

    ``DataLoader`` requests a whole batch at once, and its samples are read together. Slices are views. Arrays are
    writable copies. A value that a sample lacks is ``None``, which ``DataLoader`` refuses to collate: fill it in
    ``transform``.
    """

    def __init__(self, dataset: Source, transform: Callable[[Sample], Any] | None = None) -> None:
        check_functions(transform)
        self.dataset = opened(dataset)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return MapDataset(self.dataset[index], self.transform)
        return self._transformed(index, self.dataset[index])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples with these numbers, read together."""
        samples = self.dataset.__getitems__(indices)
        return [self._transformed(index, sample) for index, sample in zip(indices, samples, strict=True)]

    def __repr__(self) -> str:
        return f"<grainstore.torch.MapDataset of {self.dataset!r}>"

    def _transformed(self, index: Any, sample: Sample) -> Any:
        sample = owned(sample)
        if self.transform is None:
            return sample
        try:
            return self.transform(sample)
        except Exception as error:
            raise failed(self.dataset, index, "the transform", error) from error
