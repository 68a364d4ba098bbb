"""Claim: PyTorch's DataLoader without workers over a dataset is as fast as with 4 workers over plain files.

Cold; shuffled, batches of 256, samples of 3 KB and of 110 KB. Twice: with batches that are lists of ``bytes``, and with
batches that are one tensor, which workers hand over through shared memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from data import BATCH_SIZE, CIFAR, IMAGENET, Shape, compare, dataset, kept
from report import AtLeast, Report, Row, say
from timing import COLD_TEXT, Cold, Spread, arguments, interleaved, isolated, make_cold
from torch.utils.data import DataLoader, Dataset

import grainstore

# Files of one directory.
_PER_FOLDER = 1000


class Files(Dataset[bytes]):
    """Samples as files, a thousand a folder."""

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = str(path), count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, ordinal: int) -> bytes:
        with open(file_name(self._path, ordinal), "rb", buffering=0) as file:
            return file.read()


def file_name(path: str, ordinal: int) -> str:
    return f"{path}/{ordinal // _PER_FOLDER:05}/{ordinal:08}.bin"


def files(shape: Shape) -> Path:
    def write(path: Path) -> None:
        for ordinal, sample in enumerate(shape):
            name = Path(file_name(str(path), ordinal))
            if ordinal % _PER_FOLDER == 0:
                name.parent.mkdir(parents=True)
            name.write_bytes(sample)

    return kept(f"{shape.label}-files", write)


def bytes_of(sample: bytes | dict[str, Any]) -> bytes:
    return sample if isinstance(sample, bytes) else sample["image"]


def as_list(samples: list[Any]) -> list[bytes]:
    return [bytes_of(sample) for sample in samples]


def as_tensor(samples: list[Any]) -> tuple[torch.Tensor, list[int]]:
    """One tensor of all bytes, and the lengths of the samples."""
    images = as_list(samples)
    return torch.frombuffer(bytearray().join(images), dtype=torch.uint8), [len(image) for image in images]


def measure(samples: Any, path: Path, collate: Callable[[list[Any]], Any], workers: int, seed: int) -> float:
    """Samples a second of an epoch that begins cold; starting the workers is part of it."""
    torch.manual_seed(seed)
    # Forked workers start at once; others import all modules first.
    context = "fork" if workers else None
    loader = DataLoader(
        samples, BATCH_SIZE, shuffle=True, num_workers=workers, collate_fn=collate, multiprocessing_context=context
    )
    count = 0
    start = time.perf_counter()
    for batch in loader:
        count += len(batch) if isinstance(batch, list) else len(batch[1])
    elapsed_s = time.perf_counter() - start
    if count != len(samples):
        raise SystemExit(f"{path}: {count} samples came, expected {len(samples)}")
    return count / elapsed_s


def grainstore_rate(path: Path, collate: Callable[[list[Any]], Any], seed: int) -> tuple[float, Cold]:
    cold = make_cold(path)
    with grainstore.open(path) as ds:
        return measure(ds, path, collate, 0, seed), cold


def files_rate(path: Path, count: int, collate: Callable[[list[Any]], Any], workers: int, seed: int) -> float:
    make_cold(path)
    return measure(Files(path, count), path, collate, workers, seed)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="workers over plain files")
    options = parser.parse_args()
    report = Report("dataloader", judged=options.samples is None and options.workers == 4, packages=("torch",))
    for shape in (CIFAR, IMAGENET):
        if options.only in shape.name:
            add_rows(report, shape.shrunk(options.samples), options.rounds, options.workers)
    report.finish(options.json)


def add_rows(report: Report, shape: Shape, rounds: int, workers: int) -> None:
    grain, plain = dataset(shape), files(shape)
    with grainstore.open(grain) as ds:
        compare(shape, lambda ordinal: ds.__getitems__([ordinal])[0]["image"])
    compare(shape, Files(plain, shape.samples).__getitem__)
    kinds = {"lists": as_list, "one tensor": as_tensor}
    measured: dict[str, Callable[[int], Any]] = {}
    for kind, collate in kinds.items():
        measured[f"grainstore, {kind}"] = lambda seed, collate=collate: isolated(grainstore_rate, grain, collate, seed)
        measured[f"files, {kind}"] = lambda seed, collate=collate: isolated(
            files_rate, plain, shape.samples, collate, workers, seed
        )
    results = interleaved(rounds, measured, lambda text: say(f"{shape.name}: {text}"))
    for kind in kinds:
        rates, others = [rate for rate, _ in results[f"grainstore, {kind}"]], results[f"files, {kind}"]
        report.note(COLD_TEXT[results[f"grainstore, {kind}"][0][1]])
        what = f"{kind}: grainstore, 0 workers / files, {workers} workers"
        report.add(Row(shape.name, what, Spread.ratio(rates, others), AtLeast(1.0)))
        report.add(Row(shape.name, f"{kind}: grainstore, 0 workers, samples/s", Spread.of(rates)))
        report.add(Row(shape.name, f"{kind}: files, {workers} workers, samples/s", Spread.of(others)))


if __name__ == "__main__":
    main()
