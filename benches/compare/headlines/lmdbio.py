"""LMDBIO (Pumma et al., ACM TOPC 2019): several processes that read their shares of one LMDB, as Caffe does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headlines import Cell, Measuring, Round
from headlines.figures import by_round, cold_text, megabytes, rate, ratios, select, text, times
from report import bold, table

name = "LMDBIO"

_ORDERED, _SHUFFLED = "grainstore, in order", "grainstore, shuffled"
_CURSOR, _GET = "LMDB, cursor", "LMDB, get, no readahead"
_READERS = [_CURSOR, _GET, _ORDERED, _SHUFFLED]
_SIZE = "3 KB"
_WORLD_SIZES = (1, 2, 4, 8)


def readers(size: str) -> list[str]:
    return _READERS if size == _SIZE else []


def measure(stored: Measuring, readers: list[str], this: Round) -> Iterator[Cell]:
    for world_size in _WORLD_SIZES:
        for reader in this.turns(readers):
            # All are one or a few files. The caches of programs stay, so that the clock measures no code that is loaded.
            cell = stored.job(reader, "ranks", "cold", this.seed, world_size=world_size, only_files=True)
            yield cell | {"world_size": world_size}


def section(results: dict[str, Any], cells: list[Cell]) -> str:
    headings = (
        "processes",
        "",
        "MB/s",
        "CPU s/GB",
        "waits / preemptions for a GB",
        "faults for a GB, major / minor",
        "read / byte",
    )
    parts = [
        "## LMDBIO: one LMDB, many processes",
        _WHAT,
        table(("what", "here, with 1, 2, 4 and 8 processes", "in the paper"), _headlines(results, cells)),
        _WHY,
        "### Rates, context switches and faults",
        f"All processes together, {cold_text(cells)}. {_MEANING}",
        table(headings, _rows(cells)),
    ]
    return "\n\n".join(parts)


def _ranks(cells: list[Cell], reader: str, world_size: int) -> list[Cell]:
    return select(cells, kind="ranks", contestant=reader, world_size=world_size)


def _headlines(results: dict[str, Any], cells: list[Cell]) -> list[tuple[str, str, str]]:
    samples = f"{results['shapes'][_SIZE]['samples']:,} samples of 3,073 B"

    def ahead(ours: str, theirs: str) -> str:
        return "<br>".join(times(ratios(rate(_ranks(cells, ours, n)), rate(_ranks(cells, theirs, n)))) for n in _WORLD_SIZES)

    def switches(reader: str) -> str:
        return "<br>".join(text(by_round(_ranks(cells, reader, n), _switches)) for n in _WORLD_SIZES)

    def fewer(theirs: str) -> str:
        numbers = ((by_round(_ranks(cells, one, n), _switches) for one in (theirs, _ORDERED)) for n in _WORLD_SIZES)
        return "<br>".join(times(ratios(of, to)) for of, to in numbers)

    return [
        (f"{samples}, rate of grainstore in order to Caffe's cursor walk", ahead(_ORDERED, _CURSOR), _FASTER),
        ("the same, shuffled anew in each epoch, which is no part of LMDBIO, to the cursor walk", ahead(_SHUFFLED, _CURSOR), ""),
        (
            "grainstore in order to `get` without readahead",
            ahead(_ORDERED, _GET),
            "mapped reads take 2.5 times as long as `pread` of 4 KB",
        ),
        ("context switches for a GB, cursor walk", switches(_CURSOR), "2,546 times as many with 36 processes (Fig. 6)"),
        ("the same, grainstore in order", switches(_ORDERED), ""),
        (
            "context switches of the cursor walk to those of grainstore in order",
            fewer(_CURSOR),
            "LMM makes 83 times fewer than LMDB",
        ),
        ("those of `get` without readahead to those of grainstore in order", fewer(_GET), ""),
    ]


def _switches(cell: Cell) -> float:
    return float(cell["waits_per_gb"] + cell["preemptions_per_gb"])


def _rows(cells: list[Cell]) -> Iterator[tuple[str, ...]]:
    for world_size in _WORLD_SIZES:
        for reader in _READERS:
            if found := _ranks(cells, reader, world_size):
                yield (
                    str(world_size),
                    bold(reader),
                    text(megabytes(found)),
                    text(by_round(found, "cpu_s_per_gb")),
                    f"{text(by_round(found, 'waits_per_gb'))} / {text(by_round(found, 'preemptions_per_gb'))}",
                    f"{text(by_round(found, 'major_faults_per_gb'))} / {text(by_round(found, 'minor_faults_per_gb'))}",
                    text(by_round(found, "read_per_delivered")),
                )


_FASTER = (
    "one reader in each node for all (LMM): up to 43.77 times, up to 1,152 processes; "
    "with everything else: 81.05 times, 4,608 processes"
)

_WHAT = """\
Caffe's processes each walk one LMDB by a cursor and skip what belongs to others. LMDB reads by faults of mapped pages; in the
paper, processes that wait for pages wake each other again and again. LMDBIO lets one process of a node read for all, later
with `pread` at positions that it computes. Its setting: 36 cores a node, GPFS, 50 million samples of 3 KB, batches of 18,432."""

_WHY = """\
**Why they differ.**

- **One node, two cores, one local disk.** The large factors of the paper come from up to 128 nodes on one parallel file
  system, where faults become small requests over a network. Here all processes share one page cache, and what one of them has
  read, the others find there. The factors can only be those of one node.
- **The cursor walk is LMDB's best case here.** It is in the stored order, and the kernel reads ahead of it, so few faults
  wait for the disk. `get` without readahead makes a fault of each sample, which waits for the disk: it is nearer to what the
  paper describes.
- **Fewer wake-ups to lose.** With two cores, two processes run at a time. Those that wake each other cost less than with 36.
- **grainstore's context switches are not one for each page.** Its threads wait for chunks, and for each other when a batch is
  handed over. They do not grow with the number of samples in a chunk. But a walk that the kernel reads ahead of hardly waits
  either, so `get` without readahead is where the difference is. Minor faults of grainstore are fresh memory for batches.
- **More processes than cores** take turns. One of grainstore has several threads, and reads ahead for itself, so small shares
  of a small dataset lose more than a walk in one thread. 64,000 samples for 8 processes are 25 MB for each: their start
  weighs much.
- **Shuffled** has no counterpart: LMDBIO reads in the stored order in each epoch.
- **Not shown here:** Caffe's training time, reads that nodes do in turns, ImageNet-Large."""

_MEANING = """\
The clock runs from their common start to the end of the last. *Waits* are voluntary context switches, *preemptions*
involuntary ones. *Read / byte*: bytes from the disk for each byte of samples."""
