"""For JAX: epochs of a ``grainstore.Loader`` as a dataset of Grain, whose checkpoints then include the position.

A grainstore dataset can be used directly as a source of Grain: ``grain.MapDataset.source(grainstore.open(path))``. This
module is for epochs in grainstore's own order, which reads a device at its full speed even if samples are small.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from grainstore._core import Batch
from grainstore._errors import InvalidOption, InvalidState
from grainstore._loader import Loader

try:
    import grain  # type: ignore[import-untyped, import-not-found, unused-ignore]
except ImportError as error:
    raise ImportError("grainstore.jax needs Grain, which is not installed: pip install grain") from error

__all__ = ["IterDataset"]

_END = object()


class IterDataset(grain.IterDataset[Any]):  # type: ignore[misc, unused-ignore]
    """The batches of a loader, from its current position, as a ``grain.IterDataset``.

    It starts at the position that ``loader`` has now, and does not change that loader: every iterator starts there, as
    Grain expects. An element is what the loader returns; a batch of columns becomes a dictionary, in which numbers and
    array fields are NumPy arrays, fields of bytes ``grainstore.Buffers`` and texts lists of ``str``. A batch whose samples
    lack a number or an array raises ``InvalidOption``: JAX has no missing numbers.

    num_epochs: passes over the dataset, each in its own order; ``None`` for no end. Grain's ``RepeatIterDataset``
        would repeat the order of the first.

    The state of an iterator is that of the loader, whatever follows it in the pipeline. With ``mp_prefetch`` worker ``j``
    of ``k`` on rank ``r`` of ``w`` reads as rank ``r + w * j`` of ``w * k``.
    """

    def __init__(self, loader: Loader, *, num_epochs: int | None = 1) -> None:
        super().__init__()
        if not isinstance(loader, Loader):
            raise TypeError(f"loader is a grainstore.Loader, not {type(loader).__name__}")
        if num_epochs is not None and num_epochs < 1:
            raise InvalidOption(f"num_epochs is {num_epochs}, expected 1 or more, or None for no end")
        # Workers do not know the rank of this process.
        self._loader = _with_rank(loader, loader.rank, loader.world_size, 1)
        self._end = None if num_epochs is None else loader.epoch + num_epochs

    def __iter__(self) -> grain.DatasetIterator[Any]:
        return _Batches(copy.copy(self._loader), self._end)

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Read the share of one worker: Grain calls this in each worker, on its own copy."""
        loader = self._loader
        rank, world_size = loader.rank + loader.world_size * sl.start, loader.world_size * sl.step
        self._loader = _with_rank(loader, rank, world_size, sl.step)

    def __str__(self) -> str:
        return f"grainstore.jax.IterDataset({self._loader!r})"


class _Batches(grain.DatasetIterator[Any]):  # type: ignore[misc, unused-ignore]
    """The elements of a loader, one epoch after the other."""

    def __init__(self, loader: Loader, end: int | None) -> None:
        super().__init__()
        self._loader = loader
        self._end = end
        self._pass: Iterator[Any] | None = None

    def __next__(self) -> Any:
        self._assert_not_closed()
        while self._end is None or self._loader.epoch < self._end:
            if self._pass is None:
                if not len(self._loader):
                    break
                self._pass = iter(self._loader)
            batch = next(self._pass, _END)
            if batch is not _END:
                return _columns(batch) if isinstance(batch, Batch) else batch
            self._pass = None
        raise StopIteration

    def get_state(self) -> dict[str, Any]:
        return self._loader.state_dict()

    def set_state(self, state: dict[str, Any]) -> None:
        epoch = state.get("epoch") if isinstance(state, dict) else None
        if self._end is not None and isinstance(epoch, int) and epoch > self._end:
            raise InvalidState(f"the state is of epoch {epoch}, and this dataset ends before epoch {self._end}")
        self._loader.load_state_dict(state)
        self._pass = None

    def close(self) -> None:
        self._pass = None
        super().close()


def _with_rank(loader: Loader, rank: int, world_size: int, num_workers: int) -> Loader:
    """A copy of the loader that reads another share: that of one worker of a rank."""
    copied = copy.copy(loader)
    copied._rank, copied._world_size, copied._num_workers = rank, world_size, loader._num_workers * num_workers
    return copied


def _columns(batch: Batch) -> dict[str, Any]:
    return {name: _without_mask(name, batch[name]) for name in batch.keys()}


def _without_mask(name: str, column: Any) -> Any:
    """The column as a plain array: later steps of a pipeline may ignore a mask."""
    if not isinstance(column, np.ma.MaskedArray):
        return column
    missing = int(np.ma.getmaskarray(column).reshape(len(column), -1).any(axis=1).sum())
    if missing:
        raise InvalidOption(
            f"column {name!r}: {missing} of {len(column)} samples of a batch lack a value, and JAX has no missing numbers: "
            "leave such samples out (Dataset.select), or replace the value in a transform of the loader"
        )
    return column.data
