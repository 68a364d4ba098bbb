"""Several processes that share one epoch: their rate together, and what it costs the system.

Every process opens the files for itself before the clock starts; then all begin together.
"""

from __future__ import annotations

import importlib
import multiprocessing
import time
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from contestants import everybody
from headlines.readers import Shared
from measure import CHECKED_EVERY, Job, prepare
from samples import Numbers, Shape, WrongContents
from usage import Disturbance, Spent

# Seconds that the slowest process has for opening its files.
_BEGIN_WITHIN_S = 60


@dataclass(frozen=True)
class _Share:
    """What one process has read, and when by the clock that all processes of a machine share."""

    numbers: npt.NDArray[np.int64]
    start_s: float
    end_s: float
    spent: Spent
    disturbance: Disturbance


def ranks(job: Job) -> dict[str, Any]:
    """An epoch by ``job.world_size`` processes."""
    kind = everybody()[0][job.contestant]
    # Imported here and not by each process. Lengths are made when they are first asked for: not while the clock runs.
    for module in kind.modules:
        importlib.import_module(module)
    delivered_bytes = job.shape.payload_bytes
    result = prepare(job, [Path(path) for path in job.paths])
    context = multiprocessing.get_context("fork")
    begin, processes, ends = context.Barrier(job.world_size), [], []
    for rank in range(job.world_size):
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=_read_share, args=(job, rank, begin, sending))
        process.start()
        # Otherwise nobody would notice that the process has ended without a result.
        sending.close()
        processes.append(process)
        ends.append(receiving)
    shares: list[_Share] = [end.recv() for end in ends]
    for process in processes:
        process.join()
    return result | _together(job.shape, delivered_bytes, shares)


def _read_share(job: Job, rank: int, begin: Any, sending: Connection) -> None:
    contestant = everybody()[0][job.contestant](job.shape, None)
    assert isinstance(contestant, Shared)
    contestant.open(Path(job.paths[0]))
    numbers, shape = Numbers(job.shape), job.shape
    begin.wait(_BEGIN_WITHIN_S)
    spent, disturbance, start_s = Spent.now(), Disturbance.now(), time.monotonic()
    for batch in contestant.share(rank, job.world_size, job.seed):
        numbers.add(batch)
        for sample in batch[::CHECKED_EVERY]:
            shape.check(sample)
    end_s, disturbance, spent = time.monotonic(), Disturbance.now().since(disturbance), Spent.now().since(spent)
    sending.send(_Share(numbers.checked(whole=False), start_s, end_s, spent, disturbance))
    contestant.close()


def _together(shape: Shape, delivered_bytes: int, shares: list[_Share]) -> dict[str, Any]:
    times = np.bincount(np.concatenate([share.numbers for share in shares]), minlength=shape.samples)
    if (times != 1).any():
        twice, missing = int((times > 1).sum()), int((times == 0).sum())
        raise WrongContents(f"{shape.label}: {twice} samples came to several processes, {missing} to none")
    elapsed_s = max(share.end_s for share in shares) - min(share.start_s for share in shares)
    gigabytes = delivered_bytes / 1e9
    disturbed = {
        f"{name}_per_gb": sum(asdict(share.disturbance)[name] for share in shares) / gigabytes
        for name in asdict(shares[0].disturbance)
    }
    return disturbed | {
        "world_size": len(shares),
        "samples": shape.samples,
        "seconds": elapsed_s,
        "samples_per_s": shape.samples / elapsed_s,
        "delivered_bytes": delivered_bytes,
        "cpu_s_per_gb": sum(share.spent.cpu_s for share in shares) / gigabytes,
        "read_per_delivered": sum(share.spent.read_bytes for share in shares) / delivered_bytes,
    }
