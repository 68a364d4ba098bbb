"""Claim: epochs of samples of 512 bytes come as lists of ``bytes`` at 1.5 million samples a second or more, warm."""

from __future__ import annotations

import time
from pathlib import Path

from data import BATCH_SIZE, TINY, check_epoch, dataset
from report import AtLeast, Report, Row, say
from timing import Spread, arguments, interleaved, isolated, make_warm

import grainstore


def rate(path: Path, io: str, epoch: int, *, listed: bool) -> float:
    """Samples a second, as lists of ``bytes`` or as columns that nobody looks into."""
    make_warm(path)
    with grainstore.open(path, io=io) as ds:
        loader = grainstore.Loader(ds, BATCH_SIZE, order="chunked", epoch=epoch, prefetch_next_epoch=False)
        samples = 0
        start = time.perf_counter()
        for batch in loader:
            images = batch["image"]
            samples += len(images.tolist()) if listed else len(images)
        elapsed_s = time.perf_counter() - start
        if samples != len(ds):
            raise SystemExit(f"{path}: {samples} samples came, expected {len(ds)}")
        return samples / elapsed_s


def listed_rate(path: Path, io: str, epoch: int) -> float:
    return rate(path, io, epoch, listed=True)


def column_rate(path: Path, io: str, epoch: int) -> float:
    return rate(path, io, epoch, listed=False)


def main() -> None:
    options = arguments(__doc__).parse_args()
    report = Report("lists", judged=options.samples is None)
    shape = TINY.shrunk(options.samples)
    path = dataset(shape)
    with grainstore.open(path) as ds:
        loader = grainstore.Loader(ds, BATCH_SIZE, order="chunked", prefetch_next_epoch=False)
        check_epoch(shape, (sample for batch in loader for sample in batch["image"].tolist()))
    measured = {
        f"{kind}, {io}": lambda epoch, function=function, io=io: isolated(function, path, io, epoch)
        for kind, function in (("lists of bytes", listed_rate), ("columns", column_rate))
        for io in ("buffered", "mapped")
        if options.only in f"{kind}, {io}"
    }
    for name, rates in interleaved(options.rounds, measured, say).items():
        target = AtLeast(1_500_000) if name.startswith("lists") else None
        report.add(Row(shape.name, f"{name}, samples/s", Spread.of(rates), target))
    report.note("warm: the files were read right before; one process, chunked")
    report.finish(options.json)


if __name__ == "__main__":
    main()
