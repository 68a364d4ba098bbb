"""The table at the end of a benchmark, and the same as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from timing import Spread

import grainstore

_HEADINGS = ("case", "measured", "target", "median", "min", "max", "verdict")
_WORDS = {"case", "measured", "target", "verdict"}


@dataclass(frozen=True)
class AtLeast:
    """What a number has to reach for its claim to hold."""

    bound: float

    def holds(self, number: float) -> bool:
        return number >= self.bound

    def __str__(self) -> str:
        return f">= {_shown(self.bound)}"


@dataclass(frozen=True)
class AtMost:
    """What a number may not exceed for its claim to hold."""

    bound: float

    def holds(self, number: float) -> bool:
        return number <= self.bound

    def __str__(self) -> str:
        return f"<= {_shown(self.bound)}"


@dataclass(frozen=True)
class Row:
    """A line of the table. Without a target it claims nothing."""

    case: str
    measured: str
    reached: Spread
    target: AtLeast | AtMost | None = None

    def cells(self, *, judged: bool) -> tuple[str, ...]:
        target, reached = self.target, self.reached
        numbers = (_shown(reached.median), _shown(reached.min), _shown(reached.max))
        verdict = ""
        if target is not None:
            verdict = "none" if not judged else "holds" if target.holds(reached.median) else "falls short"
        return (self.case, self.measured, "" if target is None else str(target), *numbers, verdict)

    def document(self, *, judged: bool) -> dict[str, Any]:
        target, reached = self.target, self.reached
        return {
            "case": self.case,
            "measured": self.measured,
            "target": None if target is None else {type(target).__name__: target.bound},
            "holds": target.holds(reached.median) if target is not None and judged else None,
            "median": reached.median,
            **asdict(reached),
        }


class Report:
    """Rows and notes of one benchmark.

    judged: whether there are verdicts; with fewer samples than the claims name there are none.
    packages: those whose versions belong to the result.
    """

    def __init__(self, benchmark: str, *, judged: bool, packages: tuple[str, ...] = ()) -> None:
        self.benchmark = benchmark
        self.judged = judged
        self.packages = {"grainstore": grainstore.__version__, **{name: metadata.version(name) for name in packages}}
        self.rows: list[Row] = []
        self.notes: list[str] = []

    def add(self, row: Row) -> None:
        """Add a line, and print it: the whole table comes only at the end."""
        say("  ".join(cell for cell in row.cells(judged=self.judged) if cell))
        self.rows.append(row)

    def note(self, text: str) -> None:
        """Add a sentence below the table, once."""
        if text not in self.notes:
            self.notes.append(text)

    def finish(self, json_path: Path | None) -> None:
        """Print the table, and write it as JSON on request."""
        print(self.table())
        if json_path is not None:
            target = json_path / f"{self.benchmark}.json" if json_path.is_dir() else json_path
            target.write_text(json.dumps(self.document(), indent=2) + "\n")

    def table(self) -> str:
        lines = [_HEADINGS, *(row.cells(judged=self.judged) for row in self.rows)]
        widths = [max(len(cells[column]) for cells in lines) for column in range(len(_HEADINGS))]
        kind = "median of the rounds" if self.judged else "fewer samples than the claims name, no verdicts"
        versions = ", ".join(f"{name} {version}" for name, version in self.packages.items())
        head = [f"{self.benchmark}: {kind}; {_machine()}; {versions}"]
        return "\n".join(head + [_line(cells, widths) for cells in lines] + [f"note: {note}" for note in self.notes])

    def document(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark,
            "judged": self.judged,
            "machine": _machine(),
            "packages": self.packages,
            "rows": [row.document(judged=self.judged) for row in self.rows],
            "notes": self.notes,
        }


def say(text: str) -> None:
    """Print a message for the user, apart from the results."""
    print(text, file=sys.stderr, flush=True)


def _machine() -> str:
    return f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    aligned = (
        cell.ljust(width) if heading in _WORDS else cell.rjust(width)
        for heading, cell, width in zip(_HEADINGS, cells, widths, strict=True)
    )
    return "  ".join(aligned).rstrip()


def _shown(number: float) -> str:
    """Three digits that matter, or more before the point."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.3f}"
