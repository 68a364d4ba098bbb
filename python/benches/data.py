"""The samples of ``benches/compare`` as datasets, written once and kept between runs, and checks of what is read."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import grainstore

# Behind this folder, which has a report of its own.
sys.path.append(str(Path(__file__).parents[2] / "benches/compare"))
from samples import BATCH_SIZE, CIFAR, IMAGENET, TINY, Shape, in_batches

__all__ = ["BATCH_SIZE", "CIFAR", "IMAGENET", "TINY", "Shape", "in_batches"]

_SEED = 7
# Samples whose contents are compared before anything is measured.
_COMPARED = 64

CHUNK_BYTES = 256 << 10


def folder() -> Path:
    """The folder on the disk that is measured."""
    named = os.environ.get("GRAINSTORE_BENCH_DIR")
    if not named:
        raise SystemExit("GRAINSTORE_BENCH_DIR is not set: name a folder on the disk that is to be measured")
    path = Path(named)
    path.mkdir(parents=True, exist_ok=True)
    return path


def kept(name: str, write: Callable[[Path], None]) -> Path:
    """What ``write`` has written to the path that it is given, in this run or an earlier one."""
    path = folder() / name
    if not path.exists():
        # What was broken off is never taken for the whole. Some libraries go by the ending of a name.
        partial = path.with_name(f"partial-{name}")
        if partial.is_dir():
            shutil.rmtree(partial)
        partial.unlink(missing_ok=True)
        write(partial)
        partial.rename(path)
        os.sync()
    return path


def dataset(shape: Shape, *, labelled: bool = False) -> Path:
    """The samples as a dataset with keys and the field ``image``; ``labelled`` ones have the attribute ``label``."""

    def write(path: Path) -> None:
        schema = {"image": "bytes"} | ({"label": "int64"} if labelled else {})
        first = 0
        with grainstore.Writer(path, schema=schema, keyed=True, chunk_bytes=CHUNK_BYTES) as writer:
            for images in in_batches(shape, 1024 if shape.longest < 1 << 14 else 16):
                ordinals = range(first, first + len(images))
                first += len(images)
                columns: dict[str, Sequence[object]] = {"image": images}
                if labelled:
                    columns["label"] = [label_of(ordinal) for ordinal in ordinals]
                writer.write_batch(key=[f"sample-{ordinal}" for ordinal in ordinals], **columns)

    return kept(f"{shape.label}{'-labelled' if labelled else ''}.grain", write)


def label_of(ordinal: int) -> int:
    return ordinal % 1000


def compare(shape: Shape, read: Callable[[int], bytes]) -> None:
    """End with an error unless ``read`` gives the samples: some all over, the first and the last."""
    ordinals = {0, shape.samples - 1, *np.random.default_rng(_SEED).integers(0, shape.samples, _COMPARED).tolist()}
    for ordinal in sorted(ordinals):
        check(shape, ordinal, read(ordinal))


def check(shape: Shape, ordinal: int, found: bytes) -> None:
    if found != shape.sample(ordinal):
        raise SystemExit(
            f"{shape.label}: sample {ordinal} has other bytes than were written: "
            f"remove what is in {folder()} to have it made again"
        )


def check_epoch(shape: Shape, samples: Iterable[bytes]) -> npt.NDArray[np.int64]:
    """The ordinals of an epoch, in its order. End with an error unless every sample came once, with its bytes."""
    compared = set(np.random.default_rng(_SEED).integers(0, shape.samples, _COMPARED).tolist())
    ordinals = np.empty(shape.samples, np.int64)
    count = 0
    for sample in samples:
        ordinal = int.from_bytes(sample[:8], "little")
        if ordinal in compared:
            check(shape, ordinal, sample)
        if count < shape.samples:
            ordinals[count] = ordinal
        count += 1
    if count != shape.samples or not np.array_equal(np.sort(ordinals), np.arange(shape.samples)):
        raise SystemExit(f"{shape.label}: {count} samples came, expected each of {shape.samples} once")
    return ordinals
