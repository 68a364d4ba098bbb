"""How things are measured: cold or warm, each in a separate process, in rounds, and their medians."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

# Where root empties all caches of the machine.
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")

Cold = Literal["drop_caches", "fadvise"]

# How a report describes the way reads were made cold.
COLD_TEXT: dict[Cold, str] = {
    "drop_caches": "cold: all caches of the machine were emptied before each measurement",
    "fadvise": "cold: the files were taken out of the page cache before each measurement (root could empty all caches, "
    "those of directories and inodes too)",
}


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser of what every benchmark takes; a script adds its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="how often everything is measured")
    parser.add_argument("--samples", type=int, metavar="N", help="samples of a dataset, where the claim has more")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there, too; a folder or a file")
    parser.add_argument("--only", default="", metavar="WORD", help="only cases whose name has WORD in it")
    return parser


def isolated(function: Callable[..., Any], *values: Any) -> Any:
    """What ``function``, which must be in a module, returns in a fresh process.

    Nothing that another measurement left behind (memory, threads, modules) is there.
    """
    with ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn"), initializer=_start_processes_as_usual
    ) as pool:
        return pool.submit(function, *values).result()


def _start_processes_as_usual() -> None:
    # A process that was spawned spawns others by default: workers would import everything again while the clock runs.
    multiprocessing.set_start_method(None, force=True)


def files_of(path: Path) -> Iterable[Path]:
    """The files at ``path``: itself, or all below it."""
    if path.is_file():
        return [path]
    return (Path(folder, name) for folder, _, names in os.walk(path) for name in names)


def make_cold(path: Path) -> Cold:
    """Empty the caches as far as this user may; at least of the files at ``path``. Returns which it was."""
    # A page that is not yet written cannot be dropped.
    os.sync()
    try:
        _DROP_CACHES.write_text("3")
        return "drop_caches"
    except OSError:
        for file in files_of(path):
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        return "fadvise"


def make_warm(path: Path) -> None:
    """Read the files at ``path`` once, so that the page cache holds what fits."""
    block = bytearray(1 << 20)
    for file in files_of(path):
        with file.open("rb", buffering=0) as opened:
            while opened.readinto(block):
                pass


@dataclass(frozen=True)
class Spread:
    """The same number of several rounds, in their order."""

    rounds: tuple[float, ...]

    @classmethod
    def of(cls, rounds: Iterable[float]) -> Spread:
        return cls(tuple(rounds))

    @classmethod
    def ratio(cls, numbers: Sequence[float], others: Sequence[float]) -> Spread:
        """Round by round, so that what slows a whole round down counts for neither."""
        return cls(tuple(number / other for number, other in zip(numbers, others, strict=True)))

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def min(self) -> float:
        return min(self.rounds)

    @property
    def max(self) -> float:
        return max(self.rounds)


def interleaved(
    rounds: int, measured: Mapping[str, Callable[..., Any]], report: Callable[[str], None] | None = None
) -> dict[str, list[Any]]:
    """Call each of ``measured`` once a round, with the round's number; the first of a round is the last of the next one.

    ``report`` is called with the name of what is measured next.
    """
    results: dict[str, list[Any]] = {name: [] for name in measured}
    names = list(measured)
    for number in range(rounds):
        for name in names:
            if report is not None:
                report(f"round {number + 1} of {rounds}: {name}")
            results[name].append(measured[name](number))
        names = names[1:] + names[:1]
    return results
