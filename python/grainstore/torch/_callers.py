"""What iterates over a dataset, where that decides which samples it must give.

Some libraries divide what a dataset gives among the processes themselves: each process that also took only its own share
would lose the others' samples without a word. Such a library calls the dataset, directly or through torch's
``DataLoader``, so that its objects are on the call stack, in forked workers too. Workers that are not forked get the
dataset by pickle, and what was found where it was pickled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Literal

import torch.utils.data

Division = Literal["dispatched", "filtered"]

# Classes that divide a dataset's items: one process reads all and sends each process its part, or all processes read all
# and keep their part.
_DIVIDING: dict[str, Division] = {"DataLoaderDispatcher": "dispatched", "IterableDatasetShard": "filtered"}
_LIBRARIES = ("accelerate", "transformers")


def dividing_caller() -> tuple[Any, Division] | None:
    """The object that divides what the dataset gives among the processes, if one is at work, and how it does so."""
    for local in _frames(*_LIBRARIES):
        owner = local.get("self")
        division = _DIVIDING.get(type(owner).__name__)
        if division is not None:
            return owner, division
    return None


def is_collated_by_torch(dataset: object) -> bool:
    """Whether torch's ``DataLoader``, which iterates over this dataset, makes batches of what it gives."""
    for local in _frames("torch.utils.data._utils.fetch"):
        if local.get("dataset") is dataset:
            return bool(local.get("auto_collation", False))
    return False


def is_collated_by_default() -> bool:
    """Whether torch's ``DataLoader`` makes a batch, with its own function, of what is read now."""
    for local in _frames("torch.utils.data._utils.fetch"):
        fetcher: Any = local.get("self")
        return bool(getattr(fetcher, "auto_collation", False)) and fetcher.collate_fn is torch.utils.data.default_collate
    return False


def _frames(*modules: str) -> Iterator[dict[str, Any]]:
    """The local variables of every calling function of these modules, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if (frame.f_globals.get("__name__") or "").startswith(modules):
            yield frame.f_locals
        frame = frame.f_back
