"""The samples that are measured, the same for every library: made from a seed, written once, kept between runs.

A sample is its ordinal, 8 bytes little-endian, and then noise that nothing compresses. So every epoch shows by itself
which samples came, and in which order.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

import grainstore

_SEED = 7
# Bytes of noise that are made together.
_NOISE_BYTES = 1 << 20
# Samples whose contents are compared before anything is measured.
_COMPARED = 64

BATCH_SIZE = 256
CHUNK_BYTES = 256 << 10


@dataclass(frozen=True)
class Shape:
    """Samples of one size: every length of ``shortest`` to ``longest`` bytes is equally likely."""

    name: str
    samples: int
    shortest: int
    longest: int

    def shrunk(self, samples: int | None) -> Shape:
        """The same with a limit on the number of samples."""
        return self if samples is None else replace(self, samples=min(samples, self.samples))

    @property
    def label(self) -> str:
        """What its files are called after."""
        return f"{self.name}-{self.samples}"

    @property
    def _block(self) -> int:
        """Samples whose noise is made together."""
        return max(1, _NOISE_BYTES // self.longest)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Bytes of each sample."""
        return np.random.default_rng([_SEED, 0]).integers(self.shortest, self.longest + 1, self.samples)

    @property
    def payload_bytes(self) -> int:
        return int(self.lengths.sum())

    def __iter__(self) -> Iterator[bytes]:
        """All samples in their order."""
        for first in range(0, self.samples, self._block):
            yield from self._samples_of_block(first)

    def sample(self, ordinal: int) -> bytes:
        first = ordinal - ordinal % self._block
        return self._samples_of_block(first)[ordinal - first]

    def _samples_of_block(self, first: int) -> list[bytes]:
        lengths = self.lengths[first : first + self._block].tolist()
        noise = np.random.Generator(np.random.SFC64([_SEED, 1, first])).bytes(sum(lengths))
        samples, start = [], 0
        for ordinal, length in enumerate(lengths, first):
            samples.append(ordinal.to_bytes(8, "little") + noise[start + 8 : start + length])
            start += length
        return samples


TINY = Shape("512B", 2_000_000, 512, 512)
CIFAR = Shape("3KB", 400_000, 3_073, 3_073)
IMAGENET = Shape("110KB", 40_000, 40_000, 180_000)


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


def in_batches(samples: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for sample in samples:
        batch.append(sample)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


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


@dataclass(frozen=True)
class Mixing:
    """How well an epoch is shuffled; a uniform shuffle has 1.0 in both.

    displacement: how far samples are from where they were written, on average.
    neighbours: pairs of samples in a batch that were written within the same chunk's length.
    """

    displacement: float
    neighbours: float

    @classmethod
    def of(cls, shape: Shape, ordinals: npt.NDArray[np.int64]) -> Mixing:
        count = len(ordinals)
        displacement = float(np.abs(ordinals - np.arange(count)).mean()) / (count / 3)
        chunk = max(1, CHUNK_BYTES * shape.samples // shape.payload_bytes)
        batches = ordinals[: count - count % BATCH_SIZE].reshape(-1, BATCH_SIZE) // chunk
        in_order = np.sort(batches, axis=1)
        # Pairs of equal chunks: each sample with those before it in its chunk.
        pairs = 0
        for distance in range(1, BATCH_SIZE):
            equal = int((in_order[:, distance:] == in_order[:, :-distance]).sum())
            if equal == 0:
                break
            pairs += equal
        expected = len(batches) * BATCH_SIZE * (BATCH_SIZE - 1) / 2 * (min(chunk, count) - 1) / max(1, count - 1)
        return cls(displacement, pairs / expected if expected else 1.0)
