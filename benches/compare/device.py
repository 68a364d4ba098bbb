"""What the device gives in the same run, beside which every cold rate is to be read."""

from __future__ import annotations

import json
import mmap
import os
import random
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_SECONDS = 2
# Large reads, many at a time, for rates; small reads, one at a time, for latencies.
_LARGE = {"block_bytes": 256 << 10, "depth": 16}
_SMALL = {"block_bytes": 4 << 10, "depth": 1}


def device_limit(file: Path, *, small_reads: bool = True) -> dict[str, Any]:
    """Random direct reads of a large file: bytes a second of large ones, reads a second of small ones unless unwanted."""
    measure = _by_fio if shutil.which("fio") else _by_own_reads
    try:
        large = measure(file, **_LARGE)
        small = {"reads_4k_per_s": measure(file, **_SMALL)} if small_reads else {}
    except (OSError, subprocess.CalledProcessError) as error:
        return {"failed": str(error)}
    return {
        "by": "fio" if measure is _by_fio else "own reads, O_DIRECT (fio is not installed)",
        "bytes_per_s": large * _LARGE["block_bytes"],
        **small,
    }


def _by_fio(file: Path, block_bytes: int, depth: int) -> float:
    command = ["fio", "--name=limit", f"--filename={file}", "--readonly", "--rw=randread", "--direct=1"]
    command += [f"--bs={block_bytes}", f"--runtime={_SECONDS}", "--time_based", "--output-format=json"]
    command += ["--ioengine=psync", "--thread", f"--numjobs={depth}", "--group_reporting"]
    done = subprocess.run(command, capture_output=True, check=True)
    return json.loads(done.stdout)["jobs"][0]["read"]["iops"]


def _by_own_reads(file: Path, block_bytes: int, depth: int) -> float:
    """The same by threads of our own."""
    blocks = file.stat().st_size // block_bytes
    if blocks == 0:
        raise OSError(f"{file} is shorter than a read of {block_bytes} bytes")
    descriptor = os.open(file, os.O_RDONLY | os.O_DIRECT)
    until = time.perf_counter() + _SECONDS

    def read(seed: int) -> int:
        # Direct reads need an aligned buffer, as a map of its own is.
        draw, count = random.Random(seed), 0
        with mmap.mmap(-1, block_bytes) as buffer:
            while time.perf_counter() < until:
                os.preadv(descriptor, [buffer], draw.randrange(blocks) * block_bytes)
                count += 1
        return count

    start = time.perf_counter()
    try:
        with ThreadPoolExecutor(depth) as pool:
            return sum(pool.map(read, range(depth))) / (time.perf_counter() - start)
    finally:
        os.close(descriptor)
