"""Claim: ``ds[i]`` of a sample of 3 KB takes 1.25 microseconds or less: warm, by default, random ``i``.

``benches/compare`` measures it beside others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from data import CIFAR, compare, dataset, label_of
from report import AtMost, Report, Row, say
from timing import Spread, arguments, interleaved, isolated, make_warm

import grainstore

# Samples that are read in a round; fewer would leave the clock's steps and the first touch of memory in the mean.
ASKED = 400_000


def grainstore_us(path: Path, round_number: int) -> float:
    make_warm(path)
    with grainstore.open(path) as ds:
        if ds.stats()["io"] != "mapped":
            raise SystemExit(f"{path}: it was made warm, and is read {ds.stats()['io']}")
        return mean_us(ds, round_number)


def mean_us(samples: Any, round_number: int) -> float:
    """Microseconds that ``samples[i]`` takes; each was read once before, so pages are mapped."""
    count = len(samples)
    for ordinal in range(count):
        samples[ordinal]
    order = np.random.default_rng(round_number).integers(0, count, ASKED).tolist()
    start = time.perf_counter()
    for ordinal in order:
        samples[ordinal]
    return (time.perf_counter() - start) / len(order) * 1e6


def main() -> None:
    options = arguments(__doc__).parse_args()
    report = Report("getitem", judged=options.samples is None)
    shape = CIFAR.shrunk(options.samples)
    plain, labelled = dataset(shape), dataset(shape, labelled=True)
    with grainstore.open(plain) as ds:
        compare(shape, lambda ordinal: ds[ordinal]["image"])
    with grainstore.open(labelled) as ds:
        compare(shape, lambda ordinal: ds[ordinal]["image"])
        if ds[shape.samples - 1]["label"] != label_of(shape.samples - 1):
            raise SystemExit(f"{labelled}: the last label is another one than was written")
    cases: dict[str, Callable[[int], float]] = {
        "one field": lambda number: isolated(grainstore_us, plain, number),
        "one field and a label": lambda number: isolated(grainstore_us, labelled, number),
    }
    results = interleaved(options.rounds, {name: case for name, case in cases.items() if options.only in name}, say)
    for name, times in results.items():
        report.add(Row(shape.name, f"{name}, us a sample", Spread.of(times), AtMost(1.25)))
    report.note("warm, one thread, the loop itself counted")
    report.finish(options.json)


if __name__ == "__main__":
    main()
