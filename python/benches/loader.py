"""Claim: ``Loader`` returns columns at 0.90 or more of the rate at which the reader itself reads the same epoch.

Cold and direct, chunked, whole epochs. The reader is the command ``grainstore epoch``, whose own clock is used: from
the first request to the last batch, neither starting the process nor opening the dataset counted. The same of Python.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from data import BATCH_SIZE, CIFAR, IMAGENET, TINY, Shape, compare, dataset
from report import AtLeast, Report, Row, say
from timing import COLD_TEXT, Cold, Spread, arguments, interleaved, isolated, make_cold, make_warm

import grainstore

SEED = 7
WINDOW_BYTES = 256 << 20


def loader_rate(path: Path, epoch: int) -> tuple[float, Cold]:
    """Samples a second of an epoch of ``Loader``."""
    cold = make_cold(path)
    with grainstore.open(path, io="direct") as ds:
        loader = grainstore.Loader(
            ds,
            BATCH_SIZE,
            order="chunked",
            seed=SEED,
            epoch=epoch,
            window_bytes=WINDOW_BYTES,
            prefetch_next_epoch=False,
        )
        samples = block_bytes = 0
        start = time.perf_counter()
        for batch in loader:
            samples += len(batch)
            block_bytes += len(batch["image"].block)
        elapsed_s = time.perf_counter() - start
        if samples != len(ds) or not block_bytes:
            raise SystemExit(f"{path}: {samples} samples came, expected {len(ds)}")
        return samples / elapsed_s, cold


def reader_rate(command: list[str], path: Path, epoch: int) -> float:
    """Samples a second of an epoch of the reader, by its own clock."""
    make_cold(path)
    # The program itself was made cold too, and is not what is measured.
    make_warm(Path(command[0]))
    make_warm(Path(grainstore.__file__).parent)
    order = ["--order", "chunked", "--window", str(WINDOW_BYTES), "--batch-size", str(BATCH_SIZE)]
    which = ["--seed", str(SEED), "--epoch", str(epoch), "--io", "direct", "--json"]
    run = subprocess.run([*command, "epoch", str(path), *order, *which], check=True, stdout=subprocess.PIPE)
    document: dict[str, Any] = json.loads(run.stdout)
    if not document["complete"]:
        raise SystemExit(f"{path}: the reader stopped after {document['samples']} samples")
    return float(document["samples_per_s"])


def verify(shape: Shape, path: Path) -> None:
    with grainstore.open(path) as ds:
        compare(shape, lambda ordinal: ds[ordinal]["image"])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--grainstore", metavar="PATH", help="the command (default: the package's own)")
    options = parser.parse_args()
    own = [sys.executable, "-m", "grainstore._command"]
    command = [options.grainstore] if options.grainstore else own
    report = Report("loader", judged=options.samples is None)
    for shape in (TINY, CIFAR, IMAGENET):
        if options.only not in shape.name:
            continue
        shape = shape.shrunk(options.samples)
        path = dataset(shape)
        verify(shape, path)
        results = interleaved(
            options.rounds,
            {
                "Loader": lambda epoch, path=path: isolated(loader_rate, path, epoch),
                "reader": lambda epoch, path=path: reader_rate(command, path, epoch),
            },
            lambda text, shape=shape: say(f"{shape.name}: {text}"),
        )
        rates = [rate for rate, _ in results["Loader"]]
        report.note(COLD_TEXT[results["Loader"][0][1]])
        ratio = Spread.ratio(rates, results["reader"])
        report.add(Row(shape.name, "Loader's rate / the reader's", ratio, AtLeast(0.90)))
        report.add(Row(shape.name, "Loader, samples/s", Spread.of(rates)))
        report.add(Row(shape.name, "reader, samples/s", Spread.of(results["reader"])))
    report.note(f"the reader: {' '.join(command)}")
    report.finish(options.json)


if __name__ == "__main__":
    main()
