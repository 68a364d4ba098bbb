"""What the papers that grainstore grew from report, as far as one machine can show it: a file for each paper.

A paper's file has a ``Paper``: which samples it takes, what it measures of them in a round, and its section of the page, which
has the paper's own figures beside ours and says why they differ. ``../papers.py`` calls them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from samples import CIFAR, Shape
from stored import Stored

Cell = dict[str, Any]

# Few enough files to be written in seconds, and at most 0.5 GB of each size, so that a whole run takes minutes.
SHAPES = {
    "512 B": Shape("512B", 100_000, 512, 512),
    "3 KB": CIFAR.shrunk(64_000),
    "4 KB": Shape("4KB", 32_000, 4 << 10, 4 << 10),
    "16 KB": Shape("16KB", 12_000, 16 << 10, 16 << 10),
    "128 KB": Shape("128KB", 4_000, 128 << 10, 128 << 10),
    "1 MB": Shape("1MB", 512, 1 << 20, 1 << 20),
}


class Measuring(Stored):
    """Samples of one size, measured by a program that knows the readers of these papers too."""

    program = Path(__file__).with_name("process.py")


@dataclass(frozen=True)
class Round:
    """A round of a size. turn: where it begins in a list, so that the first of a round is the last of the next one."""

    number: int

    def turns(self, names: list[str]) -> list[str]:
        turn = self.number % len(names)
        return names[turn:] + names[:turn]

    @property
    def seed(self) -> int:
        return self.number + 1


class Paper(Protocol):
    """How a paper is measured and described."""

    name: str

    def readers(self, size: str) -> list[str]:
        """Contestants of a size in ``SHAPES``; none if the paper does not take that size."""
        ...

    def measure(self, stored: Measuring, readers: list[str], this: Round) -> Iterator[Cell]:
        """One round of a size; ``readers`` are those whose contents were right."""
        ...

    def section(self, results: dict[str, Any], cells: list[Cell]) -> str:
        """The paper's part of the page."""
        ...
