"""Those that are measured: one small file each, with the settings that its documentation recommends.

A file has a class for each way to write and read the samples. Everybody hands out samples as ``bytes``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from samples import BATCH_SIZE, Shape

# Worker processes, where a library is read through PyTorch's DataLoader.
WORKERS = 4
# Memory that samples are drawn from where a library shuffles in memory: as much as grainstore's ``Loader`` takes.
_WINDOW_BYTES = 256 << 20


class Contestant:
    """A way to store samples and to read them again. A subclass lists what it lacks in its settings."""

    # What it is called in tables, and by ``--only``.
    name: ClassVar[str]
    # The distribution whose version belongs to the result; ``None`` for plain files.
    package: ClassVar[str | None]
    # What is imported before the clock starts.
    modules: ClassVar[tuple[str, ...]] = ()
    # How it is set, in words.
    settings: ClassVar[str]
    # Whose files it reads; by default its own. Then ``write`` is never called.
    reads_files_of: ClassVar[str | None] = None
    # Whose files must be there when it writes.
    writes_from: ClassVar[str | None] = None
    # Words of ``--sizes`` that it takes part in.
    sizes: ClassVar[tuple[str, ...]] = ("512", "3073", "imagenet")

    # The samples, to be asked for by ``records[number]``; ``None`` without random access.
    records: Any = None
    # Several samples by their numbers, in one call; ``None`` if there is no such call.
    get_batch: Callable[[list[int]], list[bytes]] | None = None

    def __init__(self, shape: Shape, memory_bytes: int | None) -> None:
        """memory_bytes: the limit of the process, where it has one."""
        self.shape = shape
        self.is_limited = memory_bytes is not None
        # A part of it, as libraries need other memory too.
        self.window_bytes = _WINDOW_BYTES if memory_bytes is None else min(_WINDOW_BYTES, memory_bytes // 4)

    def write(self, path: Path, source: Path | None) -> None:
        """Store the samples, uncompressed, at a path where nothing is; ``source`` is where ``writes_from`` wrote."""
        raise NotImplementedError

    def open(self, path: Path) -> None:
        raise NotImplementedError

    def payload(self, record: Any) -> bytes:
        """The bytes of what ``records[number]`` returned."""
        return record

    def epoch(self, seed: int) -> Iterable[list[bytes]]:
        """All samples once, in batches, shuffled as well as the library can by its documentation."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of everything; workers end."""

    def permutation(self, seed: int) -> list[int]:
        return np.random.default_rng(seed).permutation(self.shape.samples).tolist()

    def permuted_batches(self, seed: int) -> Iterator[list[int]]:
        order = self.permutation(seed)
        return (order[first : first + BATCH_SIZE] for first in range(0, len(order), BATCH_SIZE))


def chunks(samples: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Samples that come one by one, as batches."""
    samples = iter(samples)
    while batch := list(islice(samples, BATCH_SIZE)):
        yield batch


def as_it_is(batch: list[bytes]) -> list[bytes]:
    """What makes PyTorch's DataLoader hand out a list of bytes."""
    return batch


def everybody() -> tuple[dict[str, type[Contestant]], dict[str, str]]:
    """All contestants by name, and why others cannot take part here.

    A library that is not installed is found out by its distribution, without being imported.
    """
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    present, missing = {}, {}
    for one in _subclasses(Contestant):
        if not hasattr(one, "name"):
            continue
        try:
            version_of(one)
        except metadata.PackageNotFoundError:
            missing[one.name] = f"{one.package} is not installed"
        else:
            present[one.name] = one
    return present, missing


def _subclasses(kind: type[Contestant]) -> Iterator[type[Contestant]]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


def version_of(contestant: type[Contestant]) -> str | None:
    return None if contestant.package is None else metadata.version(contestant.package)
