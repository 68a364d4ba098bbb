"""Claim: epochs of 512-byte samples, cold and fully mixed, come 5 times as fast as from the best of other libraries.

tf.data over TFRecord files, LMDB, Bagz and LanceDB's StreamingDataset read the same samples, each shuffled as fully as
it can. Before the clock starts every one reads an epoch that is checked: each sample once, how well they are mixed.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Set before TensorFlow is imported, here or in a process that is started: otherwise it prints messages when it starts.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from data import BATCH_SIZE, TINY, Mixing, Shape, check_epoch, dataset
from peer_formats import PEERS, WINDOW_BYTES, Format
from report import AtLeast, Report, Row, say
from timing import COLD_TEXT, Cold, Spread, arguments, interleaved, isolated, make_cold

import grainstore


def columns(path: Path, shape: Shape, seed: int) -> Iterable[Any]:
    ds = grainstore.open(path)
    loader = grainstore.Loader(
        ds, BATCH_SIZE, order="chunked", seed=seed, window_bytes=WINDOW_BYTES, prefetch_next_epoch=False
    )
    return (batch["image"] for batch in loader)


def lists(path: Path, shape: Shape, seed: int) -> Iterable[list[bytes]]:
    return (images.tolist() for images in columns(path, shape, seed))


OWN = {
    "grainstore, columns": Format(dataset, columns, ()),
    "grainstore, lists of bytes": Format(dataset, lists, ()),
}
FORMATS = OWN | PEERS


def samples_of(batch: Any) -> list[bytes]:
    """The samples of a batch of any of the libraries."""
    if isinstance(batch, list):
        return batch
    return batch.tolist() if hasattr(batch, "tolist") else batch.numpy().tolist()


def write(name: str, shape: Shape) -> Path:
    return FORMATS[name].write(shape)


def mixing(name: str, path: Path, shape: Shape) -> Mixing:
    """How an epoch is mixed, which is checked to be whole."""
    batches = FORMATS[name].open(path, shape, 0)
    return Mixing.of(shape, check_epoch(shape, (sample for batch in batches for sample in samples_of(batch))))


def rate(name: str, path: Path, shape: Shape, seed: int) -> tuple[float, Cold]:
    """Samples a second of an epoch, from the request of its first batch."""
    for module in FORMATS[name].modules:
        importlib.import_module(module)
    cold = make_cold(path)
    batches = FORMATS[name].open(path, shape, seed)
    count = 0
    start = time.perf_counter()
    for batch in batches:
        count += len(batch)
    elapsed_s = time.perf_counter() - start
    if count != shape.samples:
        raise SystemExit(f"{name}: {count} samples came, expected {shape.samples}")
    return count / elapsed_s, cold


def main() -> None:
    options = arguments(__doc__).parse_args()
    packages = ("tensorflow-cpu", "lmdb", "bagz", "lancedb", "pylance", "torch")
    report = Report("peers", judged=options.samples is None, packages=packages)
    shape = TINY.shrunk(options.samples)
    names = [name for name in FORMATS if name in OWN or options.only in name]
    paths = {}
    for name in names:
        say(f"{name}: write where missing, and check")
        paths[name] = isolated(write, name, shape)
        mixed = isolated(mixing, name, paths[name], shape)
        report.add(Row(shape.name, f"{name}: displacement, 1 if uniform", Spread.of([mixed.displacement])))
        report.add(Row(shape.name, f"{name}: neighbours in a batch, 1 if uniform", Spread.of([mixed.neighbours])))
    measured = {
        # Of another seed than the epoch that was checked.
        name: lambda number, name=name: isolated(rate, name, paths[name], shape, number + 1)
        for name in names
    }
    results = interleaved(options.rounds, measured, say)
    rates = {name: [one for one, _ in runs] for name, runs in results.items()}
    report.note(COLD_TEXT[results[names[0]][0][1]])
    others = [name for name in names if name in PEERS]
    for name in names:
        report.add(Row(shape.name, f"{name}, samples/s", Spread.of(rates[name])))
    # The best of each round, even where another is the best of another round.
    best = [max(numbers) for numbers in zip(*(rates[name] for name in others), strict=True)]
    for own in OWN:
        for name in others:
            report.add(Row(shape.name, f"{own} / {name}", Spread.ratio(rates[own], rates[name])))
        report.add(Row(shape.name, f"{own} / the best of them", Spread.ratio(rates[own], best), AtLeast(5.0)))
    report.finish(options.json)


if __name__ == "__main__":
    main()
