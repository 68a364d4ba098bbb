"""Measures what the papers of ``headlines`` report, and writes what was found as JSON and as a page.

``papers`` calls it in the environment of the comparisons. The same from the results of an earlier run:

    python benches/compare/papers.py --again papers.json --docs docs
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

# Makes its readers known to ``everybody``.
import headlines.readers  # noqa: F401
from caches import files_of
from contestants import everybody, version_of
from device import device_limit
from headlines import SHAPES, Cell, Measuring, Paper, Round, dlfs, fanstore, lmdbio
from headlines.page import page
from stored import folder_of_data, is_bad, say

PAPERS: dict[str, Paper] = {paper.name: paper for paper in (dlfs, lmdbio, fanstore)}
_ROUNDS = 3
# When an epoch is cut off. It is longer than any of these epochs takes on an ordinary disk.
_LONGEST_S = 60.0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure what the papers that grainstore grew from report.")
    parser.add_argument("--only", type=_words, default=list(PAPERS), metavar="NAME,...", help=", ".join(PAPERS))
    parser.add_argument("--samples", type=int, metavar="N", help="samples of each size, where it has more")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N", help=f"how often everything is measured ({_ROUNDS})")
    parser.add_argument("--only-files", action="store_true", help="cold: leave other programs' caches alone")
    parser.add_argument("--keep", action="store_true", help="keep the data for the next run: 5 GB")
    parser.add_argument("--out", type=Path, default=Path("papers.json"), metavar="FILE")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write papers.md there")
    parser.add_argument("--again", type=Path, metavar="FILE", help="measure nothing: write the page from these results")
    return parser


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


class Size:
    """The samples of one size, for all papers that take them."""

    def __init__(self, size: str, papers: list[Paper], options: argparse.Namespace) -> None:
        self.papers = papers
        shape = SHAPES[size].shrunk(options.samples)
        folder = folder_of_data("papers")
        self.stored = Measuring(size, shape, folder, longest_s=_LONGEST_S, only_files=options.only_files)
        self.readers = list(dict.fromkeys(reader for paper in papers for reader in paper.readers(size)))
        self._failed: set[str] = set()

    def write(self) -> Iterator[Cell]:
        """Make the files, and check every byte of them by one of their readers before anything is measured."""
        seen: dict[str, list[Cell]] = {}
        for reader in self.readers:
            owner = self._owner(reader)
            if owner not in seen:
                seen[owner] = self._written(reader)
                yield from seen[owner]
            if any(map(is_bad, seen[owner])):
                self._failed.add(reader)

    def _owner(self, reader: str) -> str:
        """Whose files a reader reads; what is not installed has none."""
        contestant = self.stored.all.get(reader)
        return (contestant and contestant.reads_files_of) or reader

    def _written(self, reader: str) -> list[Cell]:
        made = self.stored.write(reader) if reader in self.stored.all else [self._missing(reader)]
        if not any(map(is_bad, made)):
            made.append(self.stored.job(reader, "check", "cold", 0))
        for cell in filter(is_bad, made):
            say(f"{reader}: {cell.get('failed') or cell.get('wrong_contents')}")
        return made

    def _missing(self, reader: str) -> Cell:
        return {"contestant": reader, "size": self.stored.size, "kind": "write", "failed": everybody()[1].get(reader, "unknown")}

    def measure(self, number: int) -> Iterator[Cell]:
        for paper in self.papers:
            readers = [reader for reader in paper.readers(self.stored.size) if reader not in self._failed]
            if readers:
                say(f"{paper.name}, {self.stored.size}: round {number + 1}")
                for cell in paper.measure(self.stored, readers, Round(number)):
                    yield cell | {"paper": paper.name, "round": number}


def run(options: argparse.Namespace) -> dict[str, Any]:
    chosen = [PAPERS[name] for name in options.only]
    taken = {size: [paper for paper in chosen if paper.readers(size)] for size in SHAPES}
    sizes = [Size(size, papers, options) for size, papers in taken.items() if papers]
    present = everybody()[0]
    readers = sorted({reader for one in sizes for reader in one.readers} & set(present))
    results: dict[str, Any] = {
        "schema_version": 1,
        "machine": {"cores": len(os.sched_getaffinity(0)), "kernel": platform.release().partition("-")[0], "python": platform.python_version()},
        "finished_at": None,
        "rounds": options.rounds,
        "papers": options.only,
        "shapes": {one.stored.size: asdict(one.stored.shape) for one in sizes},
        "contestants": {n: {"version": version_of(present[n]), "settings": present[n].settings} for n in readers},
        "device": [],
        "cells": [],
    }

    def keep(cell: Cell) -> None:
        results["cells"].append(cell)
        _save(results, options.out)

    for one in sizes:
        for cell in one.write():
            keep(cell)
    # A small file's blocks may all be in a cache below this machine.
    largest = max((file for one in sizes for file in files_of(one.stored.folder)), key=lambda file: file.stat().st_size)
    for number in range(options.rounds):
        for one in sizes:
            results["device"].append({"size": one.stored.size, "round": number, **device_limit(largest, small_reads=False)})
            for cell in one.measure(number):
                keep(cell)
    for one in sizes if not options.keep else []:
        one.stored.remove()
    results["finished_at"] = time.strftime("%Y-%m-%d", time.gmtime())
    _save(results, options.out)
    return results


def _save(results: dict[str, Any], out: Path) -> None:
    out.write_text(json.dumps(results, indent=1) + "\n")


def main() -> None:
    options = arguments().parse_args()
    if unknown := set(options.only) - set(PAPERS):
        raise SystemExit(f"{', '.join(sorted(unknown))}: no such paper; there are: {', '.join(PAPERS)}")
    results = json.loads(options.again.read_text()) if options.again else run(options)
    written = page(results, [PAPERS[name] for name in results["papers"]])
    print(written, end="")
    if options.docs:
        (options.docs / "papers.md").write_text(written)
    if any("wrong_contents" in cell for cell in results["cells"]):
        raise SystemExit("somebody returned wrong contents: see wrong_contents in the results")


if __name__ == "__main__":
    main()
