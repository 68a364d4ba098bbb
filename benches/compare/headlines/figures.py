"""Rates and ratios from the cells of a run, as text: medians of the rounds, with the lowest and the highest in brackets."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from headlines import Cell
from report import spread

_COLD_TEXT = {
    "drop_caches": "cold: all caches of the machine were emptied before each, those of names and inodes too",
    "fadvise": "cold: the files were taken out of the page cache before each",
}
# One number of each round, by its number.
ByRound = dict[int, float]


def select(cells: list[Cell], **wanted: Any) -> list[Cell]:
    """The cells that were measured and have these members."""
    return [cell for cell in cells if "seconds" in cell and all(cell.get(name) == value for name, value in wanted.items())]


def by_round(cells: list[Cell], number: str | Callable[[Cell], float]) -> ByRound:
    """A member of a cell, or what a function makes of it."""
    return {cell["round"]: cell[number] if isinstance(number, str) else number(cell) for cell in cells if "round" in cell}


def rate(cells: list[Cell]) -> ByRound:
    """Samples a second. Of one size, so ratios are those of the bytes, too."""
    return by_round(cells, "samples_per_s")


def megabytes(cells: list[Cell]) -> ByRound:
    return by_round(cells, lambda cell: cell["delivered_bytes"] / cell["seconds"] / 1e6)


def ratios(of: ByRound, to: ByRound) -> ByRound:
    """Within each round, so that a disk that drifts between rounds changes them little."""
    return {number: of[number] / to[number] for number in of if to.get(number)}


def products(of: ByRound, by: ByRound) -> ByRound:
    return {number: of[number] * by[number] for number in of if number in by}


def device(results: dict[str, Any], size: str) -> ByRound:
    """Bytes a second that the device gave before each round of a size."""
    return by_round([one for one in results["device"] if one["size"] == size and "bytes_per_s" in one], "bytes_per_s")


def cold_text(cells: list[Cell]) -> str:
    """How the reads were made cold."""
    return "; ".join(_COLD_TEXT[how] for how in dict.fromkeys(cell["cold"] for cell in cells if "cold" in cell)) or "not measured"


def text(numbers: ByRound) -> str:
    return spread(list(numbers.values())) or "not measured"


def times(numbers: ByRound) -> str:
    """A ratio of rates to others; a loss is in bold."""
    if not numbers:
        return "not measured"
    shown = f"{text(numbers)} times"
    return f"**{shown}**" if statistics.median(numbers.values()) < 1 else shown
