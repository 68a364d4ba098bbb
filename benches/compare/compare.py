"""Measures everybody in turn, in rounds, and writes what was found as JSON. ``run`` calls it in its own environment."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import caches
from contestants import Contestant, everybody, version_of
from device import device_limit
from measure import KINDS, Job
from samples import SHAPES, Shape
from usage import NO_MEMORY, memory_of

HERE = Path(__file__).parent
MEMORIES = ("cold", "warm", "limited")
# How often memory is looked at while something is measured.
_LOOK_EVERY_S = 0.2
# An epoch with less memory than data may take very long; what has come by then gives the rate.
_LONGEST_S = 60.0
# After so many times that, a measurement is taken for stuck, and ended.
_STUCK_AFTER = 20


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure grainstore, with its defaults, beside the others.")
    parser.add_argument("--only", type=_words, metavar="NAME,...", help="contestants; without it, all that are installed")
    parser.add_argument("--sizes", type=_words, default=list(SHAPES), metavar="SIZE,...", help=", ".join(SHAPES))
    parser.add_argument("--memory", type=_words, default=list(MEMORIES), metavar="STATE,...", help=", ".join(MEMORIES))
    parser.add_argument("--samples", type=int, metavar="N", help="samples of each size, where it has more")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="how often everything is measured (5)")
    parser.add_argument("--longest", type=float, default=_LONGEST_S, metavar="S", help="when an epoch is cut off (60)")
    parser.add_argument("--only-files", action="store_true", help="cold: leave other programs' caches alone")
    parser.add_argument("--keep", action="store_true", help="keep the data for the next run; it may be 60 GB")
    parser.add_argument("--out", type=Path, default=Path("results.json"), metavar="FILE")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write comparison.md and its charts there, too")
    return parser


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def say(text: str) -> None:
    """Print a message for the user, apart from the results."""
    print(text, file=sys.stderr, flush=True)


class Run:
    """One size of samples: its files, and all that is measured of it."""

    def __init__(self, size: str, folder: Path, options: argparse.Namespace, names: list[str]) -> None:
        self.size, self.options = size, options
        self.shape: Shape = SHAPES[size].shrunk(options.samples)
        self.folder = folder / self.shape.label
        present = everybody()[0]
        self.contestants = {name: present[name] for name in names if size in present[name].sizes}
        self.all = present

    def path(self, contestant: type[Contestant]) -> Path:
        return self.folder / re.sub(r"\W+", "-", contestant.reads_files_of or contestant.name).strip("-")

    def paths(self, contestant: type[Contestant]) -> list[Path]:
        source = contestant.writes_from
        return [self.path(contestant)] + ([self.path(self.all[source])] if source else [])

    def job(self, name: str, kind: str, memory: str, seed: int, **more: Any) -> dict[str, Any]:
        """The result of one measurement; a failure is a result too."""
        options = self.options
        with tempfile.NamedTemporaryFile(suffix=".json") as result:
            job = Job(
                name,
                self.size,
                self.shape.samples,
                kind,
                memory,
                [str(path) for path in self.paths(self.all[name])],
                seed,
                options.longest,
                result.name,
                only_files=options.only_files,
                **more,
            )
            found = _measured(job, Path(result.name))
        return {"contestant": name, "size": self.size, "kind": kind, "memory": memory, **found}

    def write(self, name: str) -> list[dict[str, Any]]:
        """Make the files of a contestant where they are missing, those that it is made from first."""
        contestant = self.all[name]
        owner = contestant.reads_files_of or name
        if owner not in self.all:
            return [{"contestant": name, "size": self.size, "kind": "write", "failed": f"{owner} is not installed"}]
        made = self.write(self.all[owner].writes_from) if self.all[owner].writes_from in self.all else []
        path = self.path(contestant)
        written = path.with_name(f"{path.name}.written.json")
        if written.exists():
            return made + [json.loads(written.read_text())]
        # What was broken off is never taken for the whole.
        _remove(path)
        self.folder.mkdir(parents=True, exist_ok=True)
        say(f"{self.shape.label}: write {owner}")
        result = self.job(owner, "write", "cold", 0)
        if "failed" not in result:
            written.write_text(json.dumps(result))
        return made + [result]

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

    def largest_file(self) -> Path:
        return max(caches.files_of(self.folder), key=lambda file: file.stat().st_size)


def _measured(job: Job, result: Path) -> dict[str, Any]:
    """What the process of a job has written, and the most memory that was seen meanwhile."""
    command = [sys.executable, str(HERE / "measure.py"), json.dumps(asdict(job))]
    largest, until = NO_MEMORY, time.monotonic() + _STUCK_AFTER * job.longest_s
    with tempfile.TemporaryFile() as errors:
        # A group of its own, so that its workers end with it.
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
        while True:
            try:
                child.wait(_LOOK_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                largest |= memory_of(child.pid)
            except KeyboardInterrupt:
                _end(child)
                raise
            if time.monotonic() > until:
                _end(child)
                return {"failed": f"stuck: ended after {_STUCK_AFTER * job.longest_s:.0f} s"}
        errors.seek(0)
        text = errors.read().decode(errors="replace").strip()
    if child.returncode != 0:
        why = f"killed by signal {-child.returncode}" if child.returncode < 0 else (text.splitlines() or ["no message"])[-1]
        return {"failed": why, "stderr": text[-2000:]}
    found = json.loads(result.read_text())
    for name, number in asdict(largest).items():
        if name in found:
            found[name] = max(found[name], number)
    return found


def _end(child: subprocess.Popen[bytes]) -> None:
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def folder_of_data() -> Path:
    named = os.environ.get("GRAINSTORE_BENCH_DIR")
    if not named:
        raise SystemExit("GRAINSTORE_BENCH_DIR is not set: name a folder on the disk that is to be measured")
    return Path(named) / "compare"


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
        "machine": {"cores": len(os.sched_getaffinity(0)), "kernel": platform.release(), "python": platform.python_version()},
        "finished_at": None,
        "rounds": options.rounds,
        "shapes": {size: asdict(SHAPES[size].shrunk(options.samples)) for size in options.sizes},
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
        run = Run(size, folder_of_data(), options, names)
        for name in list(run.contestants):
            made = run.write(name)
            if not any(_is_bad(cell) for cell in made):
                made.append(run.job(name, "check", "cold", 0))
            # Files that several contestants read were written once.
            keep([cell for cell in made if cell not in results["cells"]])
            for cell in filter(_is_bad, made):
                say(f"{name}: {cell.get('failed') or cell.get('wrong_contents')}")
                run.contestants.pop(name, None)
        for number in range(options.rounds if run.contestants else 0):
            results["device"].append({"size": size, "round": number, **device_limit(run.largest_file())})
            for cell in run.measure(number, limits="limited" in options.memory and no_limit is None):
                keep([cell])
        if not options.keep:
            _remove(run.folder)
    results["finished_at"] = time.strftime("%Y-%m-%d", time.gmtime())
    keep([])
    from report import page, write_docs

    print(page(results))
    if options.docs:
        write_docs(results, options.docs)
    if any("wrong_contents" in cell for cell in results["cells"]):
        raise SystemExit("somebody returned wrong contents: see wrong_contents in the results")


def _is_bad(cell: dict[str, Any]) -> bool:
    return "failed" in cell or "wrong_contents" in cell


if __name__ == "__main__":
    main()
