"""DLFS (Zhu et al., IEEE CLUSTER 2019): small samples from files of their own and from chunks, processors, lookups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headlines import Cell, Measuring, Round
from headlines.figures import ByRound, by_round, cold_text, device, megabytes, products, rate, ratios, select, text, times
from report import bold, table

name = "DLFS"

_OURS, _ONE, _MANY = "grainstore", "files", "files (16 threads)"
# The paper's batch, where a batch of grainstore's default is tens of megabytes and more.
_OURS_32 = "grainstore, batches of 32"
_READERS = [_ONE, _MANY, _OURS]
_SIZES = {size: _READERS for size in ("512 B", "4 KB", "16 KB")} | {size: [*_READERS, _OURS_32] for size in ("128 KB", "1 MB")}
# Where one core is measured, too.
_ONE_CORE_SIZE = "128 KB"
# The size that has the most names.
_LOOKUP_SIZE = "512 B"


def readers(size: str) -> list[str]:
    return _SIZES.get(size, [])


def measure(stored: Measuring, readers: list[str], this: Round) -> Iterator[Cell]:
    for reader in this.turns(readers):
        yield stored.job(reader, "epoch", "cold", this.seed)
    if stored.size == _ONE_CORE_SIZE:
        for reader in this.turns(readers):
            with _one_core():
                cell = stored.job(reader, "epoch", "cold", this.seed)
            yield cell | {"cores": 1}
    if stored.size == _LOOKUP_SIZE:
        for reader in this.turns([one for one in readers if one != _MANY]):
            yield stored.job(reader, "lookup", "warm", this.seed)


@contextmanager
def _one_core() -> Iterator[None]:
    """Processes that are started meanwhile have one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def section(results: dict[str, Any], cells: list[Cell]) -> str:
    parts = [
        "## DLFS: many small samples",
        _WHAT,
        table(("what", "here", "in the paper"), _headlines(results, cells)),
        _WHY,
        "### Rates and cores",
        f"Shuffled epochs, {cold_text(cells)}. {_MEANING}",
        table(("", "", "MB/s", "of the device", "CPU s/GB", "cores while reading"), _rows(results, cells)),
    ]
    return "\n\n".join(parts)


def _epochs(cells: list[Cell], size: str, reader: str, cores: int | None = None) -> list[Cell]:
    return [cell for cell in select(cells, size=size, contestant=reader, kind="epoch") if cell.get("cores") == cores]


def _headlines(results: dict[str, Any], cells: list[Cell]) -> Iterator[tuple[str, str, str]]:
    for size in filter(results["shapes"].__contains__, _SIZES):
        ahead = [
            f"{ours} to {theirs}: {times(ratios(rate(_epochs(cells, size, ours)), rate(_epochs(cells, size, theirs))))}"
            for ours in _SIZES[size]
            if ours not in (_ONE, _MANY)
            for theirs in (_ONE, _MANY)
        ]
        yield (f"shuffled epoch, {results['shapes'][size]['samples']:,} samples of {size}", "<br>".join(ahead), _PAPER[size])
    for size in ("4 KB", "128 KB"):
        needed = (f"{reader}: {text(_cores_needed(results, cells, size, reader))}" for reader in _SIZES[size])
        what = f"cores that would saturate the device, samples of {size}: CPU seconds for a GB times the device's GB/s"
        yield (what, "<br>".join(needed), "DLFS 1, Ext4 at least 3 (Fig. 7a)")
    one_core = (f"{one}: {text(_of_device(results, _epochs(cells, _ONE_CORE_SIZE, one, 1)))}" for one in _SIZES[_ONE_CORE_SIZE])
    yield (
        f"share of the device's rate with one core, samples of {_ONE_CORE_SIZE}",
        "<br>".join(one_core),
        "DLFS: all of it (Fig. 7a)",
    )
    yield _lookup(results, cells)


def _lookup(results: dict[str, Any], cells: list[Cell]) -> tuple[str, str, str]:
    ours, files = (by_round(select(cells, kind="lookup", contestant=one), "us") for one in (_OURS, _ONE))
    names = f"{results['shapes'][_LOOKUP_SIZE]['samples']:,} names" if _LOOKUP_SIZE in results["shapes"] else "names"
    return (
        f"finding a sample by its name, warm, {names}",
        f"`ds.find(key)`: {text(ours)} us<br>`os.open` and `os.close`: {text(files)} us<br>{times(ratios(files, ours))}",
        "two orders of magnitude faster than Ext4's `open`, 1,000,000 samples (Fig. 10)",
    )


def _cores_needed(results: dict[str, Any], cells: list[Cell], size: str, reader: str) -> ByRound:
    gigabytes = {number: found / 1e9 for number, found in device(results, size).items()}
    return products(by_round(_epochs(cells, size, reader), "cpu_s_per_gb"), gigabytes)


def _of_device(results: dict[str, Any], cells: list[Cell]) -> ByRound:
    size = cells[0]["size"] if cells else ""
    return ratios(by_round(cells, lambda cell: cell["delivered_bytes"] / cell["seconds"]), device(results, size))


def _rows(results: dict[str, Any], cells: list[Cell]) -> Iterator[tuple[str, ...]]:
    for size in _SIZES:
        for cores, words in ((None, size), (1, f"{size}, one core")):
            for reader in _SIZES[size]:
                if found := _epochs(cells, size, reader, cores):
                    busy = by_round(found, lambda cell: cell["cpu_s_per_gb"] * cell["delivered_bytes"] / 1e9 / cell["seconds"])
                    share, cpu = _of_device(results, found), by_round(found, "cpu_s_per_gb")
                    yield (words, bold(reader), text(megabytes(found)), text(share), text(cpu), text(busy))


_SMALL = "up to 4 KB: at least 1.82 times Ext4 by one thread; 3.35 times Ext4 by many, for small samples (Fig. 6)"
_LARGE = "above 16 KB, Ext4 by one thread is 43.8 % below DLFS, which is 1.78 times (Fig. 6)"
_PAPER = {"512 B": _SMALL, "4 KB": "the same", "16 KB": "between the two", "128 KB": _LARGE, "1 MB": "the same"}

_WHAT = """\
DLFS reads an NVMe device from user space (SPDK) in chunks of 256 KB, and finds samples by an index in memory. The paper
compares it with one file a sample on ext4. Its setting: E5-2650, 64 GB, one Optane of 480 GB, batches of 32, one core unless
it says otherwise."""

_WHY = """\
**Why they differ.**

- **Another disk.** This one is virtual, and a read takes 34 to 93 us
  ([latencies](benchmarks.md#the-reader-against-the-device)), several times as long as of an Optane. One thread waits for the
  inode and the bytes of each file in turn, so files lose more here than in the paper; grainstore waits once for a chunk of
  many samples.
- **Large samples gain little or lose.** Where a sample is one large request, requests in parallel are all that counts, and 16
  threads have them too. The paper's gain there is over one thread. In batches of 256 samples of 1 MB, grainstore's first
  batch comes after 256 MB, and much of its time goes into fresh memory for them. Batches of 32 are the paper's.
- **Python on both sides.** A Python loop opens, reads and closes each file, and each sample of grainstore becomes a `bytes`
  object. The paper's programs are compiled. [Against plain files](benchmarks.md#against-plain-files) has both without Python.
- **A short epoch.** 100,000 samples of 512 B are 51 MB, which grainstore reads in a fraction of a second, so the start of the
  epoch weighs more than in a real one. More files would only make the run longer.
- **The kernel is in the way, on purpose.** DLFS takes the whole device from the kernel and polls it. grainstore reads
  ordinary files on a file system that others use too, waits without polling, and computes a checksum of every sample. So it
  does not reach the device's rate with one core where DLFS does.
- **Cores that would saturate the device** are a product, where they are more than this machine has. Threads share Python's
  lock; compiled code would need fewer cores for files, but the same system calls.
- **Lookup** has the cost of a Python call on both sides. An `open` whose directory entries are in memory takes a few
  microseconds on today's kernel, so nothing that is called from Python can be two orders faster. Where the inode must be read
  from the disk first, `open` waits for the disk, and an index in memory does not. That is not in this row; it is a part of
  the epochs of files.
- **Not shown here:** figures 8, 9, 11 and 12, which are of up to 16 nodes or devices over InfiniBand."""

_MEANING = """\
*Of the device*: to random direct reads of 256 KiB, 16 at a time, before the round. *Cores while reading*: CPU time of all
threads for each second of the epoch. *One core*: the process had one core only."""
