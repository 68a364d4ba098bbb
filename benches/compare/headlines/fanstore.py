"""FanStore (Zhang et al.): how fast samples come from TFRecord files, beside a store that was made for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headlines import Cell, Measuring, Round
from headlines.figures import by_round, cold_text, megabytes, rate, ratios, select, text, times
from report import bold, table

name = "FanStore"

_SHUFFLED, _ORDERED = "grainstore", "grainstore, in order"
_BUFFER, _PLAIN, _PARALLEL = "tf.data", "tf.data, in order", "tf.data, 16 files at a time"
_TENSORFLOW = (_PLAIN, _PARALLEL, _BUFFER)
_READERS = [*_TENSORFLOW, _ORDERED, _SHUFFLED]
_SIZES = ("128 KB", "3 KB")


def readers(size: str) -> list[str]:
    return _READERS if size in _SIZES else []


def measure(stored: Measuring, readers: list[str], this: Round) -> Iterator[Cell]:
    # All are a few files. The caches of programs stay: TensorFlow's own files would take longer to load than the samples.
    ours, theirs = ([one for one in this.turns(readers) if (one in _TENSORFLOW) == so] for so in (False, True))
    for reader in ours:
        yield stored.job(reader, "epoch", "cold", this.seed, only_files=True)
    if theirs:
        found = stored.job(theirs[0], "epochs", "cold", this.seed, only_files=True, together=theirs)
        each = found.pop("each", {})
        yield from (found | {"contestant": reader, "kind": "epoch"} | each.get(reader, {}) for reader in theirs)


def section(results: dict[str, Any], cells: list[Cell]) -> str:
    parts = [
        "## FanStore: beside TFRecord",
        _WHAT,
        table(("what", "here", "in the paper"), _headlines(results, cells)),
        _WHY,
        "### Rates",
        f"One epoch, {cold_text(cells)}. {_MEANING}",
        table(("", "", "MB/s", "samples/s", "mixing", "first batch, ms", "CPU s/GB"), _rows(cells)),
    ]
    return "\n\n".join(parts)


def _epochs(cells: list[Cell], size: str, reader: str) -> list[Cell]:
    return select(cells, size=size, contestant=reader, kind="epoch")


def _headlines(results: dict[str, Any], cells: list[Cell]) -> Iterator[tuple[str, str, str]]:
    pairs = (
        ("grainstore in order to TFRecordDataset, one file after the other", _ORDERED, _PLAIN),
        ("grainstore in order to TFRecordDataset, 16 files at a time", _ORDERED, _PARALLEL),
        ("shuffled: grainstore to tf.data with interleaving and a buffer of 256 MiB", _SHUFFLED, _BUFFER),
    )
    for size in (size for size in _SIZES if size in results["shapes"]):
        for what, ours, theirs in pairs:
            here = times(ratios(rate(_epochs(cells, size, ours)), rate(_epochs(cells, size, theirs))))
            paper = "4 to 6 times TFRecord on one node (Fig. 3)" if theirs == _PLAIN else ""
            yield (f"{results['shapes'][size]['samples']:,} samples of {size}, {what}", here, paper)


def _rows(cells: list[Cell]) -> Iterator[tuple[str, ...]]:
    for size in _SIZES:
        for reader in _READERS:
            found = _epochs(cells, size, reader)
            if found:
                mixed = [cell for cell in found if cell.get("mixing") is not None]
                yield (
                    size,
                    bold(reader),
                    text(megabytes(found)),
                    text(rate(found)),
                    text(by_round(mixed, "mixing")),
                    text(by_round(found, lambda cell: cell["first_s"] * 1e3)),
                    text(by_round(found, "cpu_s_per_gb")),
                )


_WHAT = """\
FanStore packs a dataset into partitions, copies them to the nodes' local storage, keeps all metadata in memory, and hands out
whole files through intercepted system calls. The paper compares that with reading TFRecord files."""

_WHY = """\
**Why they differ.**

- **The disk decides.** Everything comes from the same cold disk here, so with samples of 128 KB no reader can be many times
  faster than another that keeps the disk busy. FanStore reads what it copied before to an SSD or to memory of the node.
- **A newer tf.data.** Batches and reads ahead run in its own threads. One file after the other is nearest to what a loop did
  at the time of the paper; the other two rows are what its documentation recommends today.
- **`bytes` on both sides.** Samples become Python objects. For tf.data this is one more copy and an object for each sample,
  which weighs on small ones. A model that takes tensors from tf.data does not pay for it.
- **Starting.** The three readers of tf.data share a process, as TensorFlow takes seconds to import. The first of them,
  another one in each round, starts its threads: see the largest times of the first batch.
- **Not the same product.** FanStore offers files to programs that know nothing of it. grainstore hands out batches.
- **Not shown here:** scaling to 64 GPUs and 512 nodes, and training times, which need those machines."""

_MEANING = """\
*Mixing*: of how many 256ths of the stored order a batch of 256 has samples, which is 162 if the shuffle is uniform."""
