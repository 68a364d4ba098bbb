"""Finding samples by name, apart from reading them: the index of a dataset, or ``open`` and ``close`` of a file; warm."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from contestants.files import FilesByName
from measure import Job
from samples import WrongContents

# Lookups of a measurement, at least: fewer would leave first touches in the mean.
_ASKED = 200_000
# Files of which the first bytes are read beside the clock: one in so many.
_CHECKED_EVERY = 64


def lookup(job: Job) -> dict[str, Any]:
    """Microseconds that a lookup takes, of random names that were all looked up once before, which makes them warm."""
    draw, samples = np.random.default_rng(job.seed), job.shape.samples
    numbers: list[int] = []
    while len(numbers) < _ASKED:
        numbers += draw.permutation(samples).tolist()
    measure = {"grainstore": _in_dataset, "files": _in_folders}[job.contestant]
    elapsed_s = measure(Path(job.paths[0]), numbers, samples)
    return {"samples": len(numbers), "seconds": elapsed_s, "us": elapsed_s / len(numbers) * 1e6}


def _in_dataset(path: Path, numbers: list[int], samples: int) -> float:
    import grainstore

    with grainstore.open(path) as ds:
        keys = [f"sample-{number}" for number in numbers]
        find = ds.find
        for key in keys[:samples]:
            find(key)
        start = time.perf_counter()
        found = [find(key) for key in keys]
        elapsed_s = time.perf_counter() - start
    # They were written in this order.
    if found != numbers:
        raise WrongContents(f"{path}: a key was found at another place than it was written")
    return elapsed_s


def _in_folders(path: Path, numbers: list[int], samples: int) -> float:
    # As few folders on the way to a file as there can be.
    os.chdir(path)
    files = FilesByName(Path())
    names = [files.name(number).removeprefix("./") for number in numbers]
    for name in names[:samples]:
        os.close(os.open(name, os.O_RDONLY))
    elapsed_s = _opening_s(names, os.open, os.close)
    for number, name in list(zip(numbers, names, strict=True))[::_CHECKED_EVERY]:
        if int.from_bytes(Path(name).read_bytes()[:8], "little") != number:
            raise WrongContents(f"{path}/{name}: another sample than {number}")
    return elapsed_s


def _opening_s(names: list[str], open_file: Callable[[str, int], int], close_file: Callable[[int], None]) -> float:
    flags = os.O_RDONLY
    start = time.perf_counter()
    for name in names:
        close_file(open_file(name, flags))
    return time.perf_counter() - start
