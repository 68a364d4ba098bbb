"""How things are measured: cold or warm, each in a separate process, in rounds, and their medians."""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Behind this folder, which has a report of its own.
sys.path.append(str(Path(__file__).parents[2] / "benches/compare"))
from caches import COLD_TEXT, Cold, make_cold, make_warm

__all__ = ["COLD_TEXT", "Cold", "make_cold", "make_warm"]


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
