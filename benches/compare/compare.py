"""Measures everybody in turn, in rounds, and writes what was found as JSON. ``run`` calls it in its own environment."""

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

import caches
from contestants import everybody, version_of
from device import device_limit
from measure import KINDS
from samples import SHAPES, Shape
from stored import Stored, folder_of_data, is_bad, say

MEMORIES = ("cold", "warm", "limited")
# An epoch with less memory than data may take very long; what has come by then gives the rate.
_LONGEST_S = 60.0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure grainstore, with its defaults, beside the others.")
    parser.add_argument("--only", type=_words, metavar="NAME,...", help="contestants; without it, all that are installed")
    parser.add_argument("--sizes", type=_words, default=list(SHAPES), metavar="SIZE,...", help=", ".join(SHAPES))
    parser.add_argument("--memory", type=_words, default=list(MEMORIES), metavar="STATE,...", help=", ".join(MEMORIES))
    parser.add_argument("--samples", type=int, metavar="N", help="samples of each size, where it has more")
    parser.add_argument("--megabytes", type=int, metavar="N", help="payload of each size in MB, where it has more")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="how often everything is measured (5)")
    parser.add_argument("--longest", type=float, default=_LONGEST_S, metavar="S", help="when an epoch is cut off (60)")
    parser.add_argument("--only-files", action="store_true", help="cold: leave other programs' caches alone")
    parser.add_argument("--keep", action="store_true", help="keep the data for the next run; it may be 60 GB")
    parser.add_argument("--out", type=Path, default=Path("results.json"), metavar="FILE")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write comparison.md and its charts there, too")
    return parser


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def shape_of(size: str, options: argparse.Namespace) -> Shape:
    shape = SHAPES[size].shrunk(options.samples)
    return shape if options.megabytes is None else shape.shrunk(shape.samples_in(options.megabytes * 1_000_000))


class Run(Stored):
    """One size of samples: its files, and all that is measured of it."""

    def __init__(self, size: str, folder: Path, options: argparse.Namespace, names: list[str]) -> None:
        super().__init__(size, shape_of(size, options), folder, longest_s=options.longest, only_files=options.only_files)
        self.options = options
        self.contestants = {name: self.all[name] for name in names if size in self.all[name].sizes}

    def measure(self, round_number: int, *, limits: bool) -> Iterator[dict[str, Any]]:
        """One round; the first of a round is the last of the next one."""
        names = list(self.contestants)
        turn = round_number % max(1, len(names))
        for memory in self.options.memory:
            if memory == "limited" and not limits:
                continue
            for kind in KINDS:
                for name in names[turn:] + names[:turn]:
                    say(f"{self.shape.label}: round {round_number + 1}, {memory}, {kind}: {name}")
                    cell = self.limited(name, kind, round_number) if memory == "limited" else None
                    cell = cell or self.job(name, kind, memory, round_number + 1)
                    yield cell | {"round": round_number}

    def limited(self, name: str, kind: str, round_number: int) -> dict[str, Any]:
        limit = self.shape.payload_bytes // 4
        with caches.memory_group(limit) as group:
            return self.job(name, kind, "limited", round_number + 1, limit_bytes=limit, group=str(group))


def main() -> None:
    options = arguments().parse_args()
    present, missing = everybody()
    names = options.only or list(present)
    for name in names:
        if name not in present:
            raise SystemExit(f"{name}: {missing.get(name, 'no such contestant')}; there are: {', '.join(present)}")
    for given, known in ((options.sizes, tuple(SHAPES)), (options.memory, MEMORIES)):
        if unknown := set(given) - set(known):
            raise SystemExit(f"{', '.join(sorted(unknown))}: unknown; there are: {', '.join(known)}")
    no_limit = caches.why_not_limited() if "limited" in options.memory else None
    results: dict[str, Any] = {
        "schema_version": 1,
        "machine": {"cores": len(os.sched_getaffinity(0)), "kernel": platform.release().partition("-")[0], "python": platform.python_version()},
        "finished_at": None,
        "rounds": options.rounds,
        "shapes": {size: asdict(shape_of(size, options)) for size in options.sizes},
        "contestants": {n: {"version": version_of(present[n]), "settings": present[n].settings} for n in names},
        "missing": missing,
        "skipped": {"limited": no_limit} if no_limit else {},
        "device": [],
        "cells": [],
    }

    def keep(cells: list[dict[str, Any]]) -> None:
        results["cells"] += cells
        options.out.write_text(json.dumps(results, indent=1) + "\n")

    for size in options.sizes:
        run = Run(size, folder_of_data("compare"), options, names)
        for name in list(run.contestants):
            made = run.write(name)
            if not any(is_bad(cell) for cell in made):
                made.append(run.job(name, "check", "cold", 0))
            # Files that several contestants read were written once.
            keep([cell for cell in made if cell not in results["cells"]])
            for cell in filter(is_bad, made):
                say(f"{name}: {cell.get('failed') or cell.get('wrong_contents')}")
                run.contestants.pop(name, None)
        for number in range(options.rounds if run.contestants else 0):
            results["device"].append({"size": size, "round": number, **device_limit(run.largest_file())})
            for cell in run.measure(number, limits="limited" in options.memory and no_limit is None):
                keep([cell])
        if not options.keep:
            run.remove()
    results["finished_at"] = time.strftime("%Y-%m-%d", time.gmtime())
    keep([])
    from report import page, write_docs

    print(page(results))
    if options.docs:
        write_docs(results, options.docs)
    if any("wrong_contents" in cell for cell in results["cells"]):
        raise SystemExit("somebody returned wrong contents: see wrong_contents in the results")


if __name__ == "__main__":
    main()
