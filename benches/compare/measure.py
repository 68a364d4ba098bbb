"""One measurement, in a process of its own: ``python measure.py JOB`` writes its result into the file that JOB names.

Contents are checked while measuring. What comes in an epoch has its number read while the clock runs, and the checksum
of one sample in 64; single samples and batches are checked whole, beside the clock.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import caches
import numpy as np
from contestants import Contestant, everybody
from samples import BATCH_SIZE, Numbers, Shape, WrongContents, mixing
from usage import NO_MEMORY, Spent, memory_of

# In an epoch, samples whose checksum is computed while the clock runs: the first of each so many.
CHECKED_EVERY = 64
# Which part of the bytes may be in the page cache for a measurement to be called cold, or must be for a warm one.
_COLD_AT_MOST, _WARM_AT_LEAST = 0.02, 0.98
# Single samples that are asked for between two looks at the clock; then they are checked.
_GETS = 32

KINDS = ("get", "batch", "epoch")


@dataclass(frozen=True)
class Job:
    """What is measured. kind: one of ``KINDS``, or ``write`` or ``check``, an epoch of which every byte is checked.

    paths: the files of the contestant, then those that it reads besides.
    longest_s: when an epoch is cut off; half of it, single samples and batches.
    world_size: processes that share an epoch, where a kind of measurement starts several.
    together: contestants that are measured one after the other in the process, where a kind of measurement takes several.
    """

    contestant: str
    shape: Shape
    kind: str
    memory: str
    paths: list[str]
    seed: int
    longest_s: float
    result: str
    limit_bytes: int | None = None
    group: str | None = None
    only_files: bool = False
    world_size: int = 1
    together: list[str] = field(default_factory=list)


class NotPrepared(Exception):
    """The caches could not be brought into the state that is asked for."""


def run(job: Job) -> dict[str, Any]:
    shape, kind = job.shape, everybody()[0][job.contestant]
    for module in kind.modules:
        importlib.import_module(module)
    contestant = kind(shape, job.limit_bytes)
    paths = [Path(path) for path in job.paths]
    if job.kind == "write":
        return write(contestant, paths)
    # Lengths are made when they are first asked for, by parts of NumPy that are on the disk: not while the clock runs.
    assert len(shape.lengths) == shape.samples
    result: dict[str, Any] = {} if job.kind == "check" else prepare(job, paths)
    if job.group is not None:
        caches.join(Path(job.group))
    base, start = memory_of(os.getpid()), time.perf_counter()
    contestant.open(paths[0])
    opened_s, opened = time.perf_counter() - start, memory_of(os.getpid())
    result |= {"open_s": opened_s, "open_own_bytes": opened.own_bytes - base.own_bytes, "base_own_bytes": base.own_bytes}
    measured = {"get": single, "batch": batches, "epoch": epoch, "check": check}[job.kind](contestant, job)
    return result | measured if measured is not None else {"absent": True}


def prepare(job: Job, paths: list[Path]) -> dict[str, Any]:
    """Bring the caches into the state that is asked for, and verify it."""
    result: dict[str, Any] = {}
    if job.memory == "warm":
        for path in paths:
            caches.make_warm(path)
    else:
        result["cold"] = [caches.make_cold(path, only_files=job.only_files) for path in paths][0]
    shares = [caches.cached_share(path) for path in paths]
    if max(shares) > _COLD_AT_MOST if job.memory != "warm" else min(shares) < _WARM_AT_LEAST:
        raise NotPrepared(f"not {job.memory}: the page cache holds {', '.join(f'{share:.0%}' for share in shares)} of it")
    return result | {"cached_share": max(shares)}


def write(contestant: Contestant, paths: list[Path]) -> dict[str, Any]:
    """Store the samples; the time until they are on the disk."""
    before, start = Spent.now(), time.perf_counter()
    contestant.write(paths[0], paths[1] if len(paths) > 1 else None)
    os.sync()
    elapsed_s, spent = time.perf_counter() - start, Spent.now().since(before)
    # Blocks, not lengths: some libraries leave holes.
    stored = sum(file.stat().st_blocks * 512 for file in caches.files_of(paths[0]))
    return {"seconds": elapsed_s, "stored_bytes": stored, "payload_bytes": contestant.shape.payload_bytes, **asdict(spent)}


class Costs:
    """CPU time, bytes read and memory from now on."""

    def __init__(self) -> None:
        self._before = Spent.now()
        self.memory = NO_MEMORY

    def end(self, contestant: Contestant) -> None:
        """Ends the workers, whose costs count only then."""
        self.memory |= memory_of(os.getpid())
        contestant.close()
        gc.collect()
        self.spent = Spent.now().since(self._before)

    def of(self, count: int, delivered_bytes: int, elapsed_s: float, *, checking_s: float = 0.0) -> dict[str, Any]:
        """Everything about ``count`` samples; ``checking_s`` is CPU time of our own beside the clock."""
        return {
            "samples": count,
            "seconds": elapsed_s,
            "samples_per_s": count / elapsed_s,
            "delivered_bytes": delivered_bytes,
            "cpu_s_per_gb": (self.spent.cpu_s - checking_s) / (delivered_bytes / 1e9),
            "read_per_delivered": self.spent.read_bytes / delivered_bytes,
            **asdict(self.memory),
        }


def single(contestant: Contestant, job: Job) -> dict[str, Any] | None:
    """``records[number]``, one sample at a time, at random."""
    if contestant.records is None:
        return None
    records, shape, payload = contestant.records, contestant.shape, contestant.payload

    def get(numbers: list[int]) -> list[Any]:
        return [records[number] for number in numbers]

    return _at_random(contestant, job, _GETS, get, lambda found: [shape.check(payload(record)) for record in found])


def batches(contestant: Contestant, job: Job) -> dict[str, Any] | None:
    """256 samples in one call, at random."""
    if contestant.get_batch is None:
        return None
    shape = contestant.shape
    return _at_random(contestant, job, BATCH_SIZE, contestant.get_batch, lambda found: [shape.check(one) for one in found])


def _at_random(
    contestant: Contestant,
    job: Job,
    together: int,
    ask: Callable[[list[int]], list[Any]],
    numbers_of: Callable[[list[Any]], list[int]],
) -> dict[str, Any]:
    """As many samples as there are, without asking for one twice, or those of half of ``longest_s``."""
    order = np.random.default_rng(job.seed).permutation(contestant.shape.samples)
    lengths = contestant.shape.lengths
    costs, elapsed_s, count, delivered = Costs(), 0.0, 0, 0
    checking_s, first_s = 0.0, None
    for first in range(0, len(order), together):
        numbers = order[first : first + together].tolist()
        start = time.perf_counter()
        found = ask(numbers)
        elapsed_s += time.perf_counter() - start
        first_s = first_s or elapsed_s
        checking = time.process_time()
        # Some libraries return a batch in the order of its keys.
        if sorted(numbers_of(found)) != sorted(numbers):
            raise WrongContents(f"{contestant.name}: other samples came than were asked for")
        count, delivered = count + len(numbers), delivered + int(lengths[numbers].sum())
        del found
        checking_s += time.process_time() - checking
        if elapsed_s > job.longest_s / 2:
            break
    costs.end(contestant)
    return costs.of(count, delivered, elapsed_s, checking_s=checking_s) | {"first_s": first_s}


def epoch(contestant: Contestant, job: Job) -> dict[str, Any]:
    """A shuffled epoch, from the request of its first batch."""
    shape, numbers = contestant.shape, Numbers(contestant.shape)
    costs, first_s, whole = Costs(), None, True
    start = time.perf_counter()
    arriving = iter(contestant.epoch(job.seed))
    for batch in arriving:
        if first_s is None:
            first_s = time.perf_counter() - start
        numbers.add(batch)
        for sample in batch[::CHECKED_EVERY]:
            shape.check(sample)
        if time.perf_counter() - start > job.longest_s:
            whole = False
            break
    elapsed_s = time.perf_counter() - start
    costs.memory = memory_of(os.getpid())
    # Workers end with it.
    del arriving
    costs.end(contestant)
    found = numbers.checked(whole=whole)
    result = costs.of(len(found), int(shape.lengths[found].sum()), elapsed_s)
    return result | {"first_s": first_s, "whole": whole, "mixing": mixing(found, shape.samples)}


def check(contestant: Contestant, job: Job) -> dict[str, Any]:
    """An epoch of which every byte is checked, before anything is measured."""
    shape, numbers = contestant.shape, Numbers(contestant.shape)
    for batch in contestant.epoch(job.seed):
        for sample in batch:
            shape.check(sample)
        numbers.add(batch)
    found = numbers.checked(whole=True)
    contestant.close()
    return {"samples": len(found), "mixing": mixing(found, shape.samples)}


def main(run: Callable[[Job], dict[str, Any]]) -> None:
    """Write the result of the job that the command line names."""
    given = json.loads(sys.argv[1])
    job = Job(**given | {"shape": Shape(**given["shape"])})
    try:
        result = run(job)
    except WrongContents as error:
        result = {"wrong_contents": str(error)}
    except NotPrepared as error:
        result = {"failed": str(error)}
    # Not to the standard output, where some libraries print.
    Path(job.result).write_text(json.dumps(result))


if __name__ == "__main__":
    main(run)
