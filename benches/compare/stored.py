"""The files of one size of samples, those of each contestant, and measurements of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import caches
from contestants import Contestant, everybody
from measure import Job
from processes import measured
from samples import Shape


# Memory that a measurement takes besides that of the files, in bytes.
_OTHER_MEMORY = 1 << 30


def say(text: str) -> None:
    """Print a message for the user, apart from the results."""
    print(text, file=sys.stderr, flush=True)


def folder_of_data(program: str) -> Path:
    """Where a program keeps its files; each its own, so that none removes what another one keeps."""
    named = os.environ.get("GRAINSTORE_BENCH_DIR")
    if not named:
        raise SystemExit("GRAINSTORE_BENCH_DIR is not set: name a folder on the disk that is to be measured")
    return Path(named) / program


def is_bad(cell: dict[str, Any]) -> bool:
    return "failed" in cell or "wrong_contents" in cell


class Stored:
    """What contestants have written of one size of samples.

    size: what its results are marked with. program: what measures a ``Job``.
    """

    program = Path(__file__).with_name("measure.py")

    def __init__(self, size: str, shape: Shape, folder: Path, *, longest_s: float, only_files: bool) -> None:
        self.size, self.shape = size, shape
        self.folder = folder / shape.label
        self.all = everybody()[0]
        self._longest_s, self._only_files = longest_s, only_files

    def path(self, contestant: type[Contestant]) -> Path:
        return self.folder / re.sub(r"\W+", "-", contestant.reads_files_of or contestant.name).strip("-")

    def paths(self, contestant: type[Contestant]) -> list[Path]:
        source = contestant.writes_from
        return [self.path(contestant)] + ([self.path(self.all[source])] if source else [])

    def job(self, name: str, kind: str, memory: str, seed: int, **more: Any) -> dict[str, Any]:
        """The result of one measurement; a failure is a result too."""
        # Files as stored take up to twice the payload; on top come a window, batches and what modules take.
        caches.claim_memory(2 * self.shape.payload_bytes + _OTHER_MEMORY)
        with tempfile.NamedTemporaryFile(suffix=".json") as result:
            job = Job(
                name,
                self.shape,
                kind,
                memory,
                [str(path) for path in self.paths(self.all[name])],
                seed,
                self._longest_s,
                result.name,
                **{"only_files": self._only_files, **more},
            )
            found = measured(self.program, job)
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

    def largest_file(self) -> Path:
        return max(caches.files_of(self.folder), key=lambda file: file.stat().st_size)

    def remove(self) -> None:
        _remove(self.folder)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
