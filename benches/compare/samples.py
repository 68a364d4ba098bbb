"""The samples that are measured, the same for everybody: made from a seed, each with its number and a checksum.

A sample is its number (8 bytes, little-endian), the CRC-32 of its number and its noise (4 bytes), and noise that nothing
compresses. So every sample shows by itself which one it is and whether its bytes are right, wherever it comes from.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

BATCH_SIZE = 256
_SEED = 7
# Bytes of noise that are made together.
_NOISE_BYTES = 1 << 20
_NUMBER, _HEAD = 8, 12


class WrongContents(Exception):
    """A sample came with other bytes than were written, twice, or not at all."""


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

    def samples_in(self, payload_bytes: int) -> int:
        """How many samples have about ``payload_bytes`` in all; one at least."""
        return max(1, payload_bytes * 2 // (self.shortest + self.longest))

    @property
    def label(self) -> str:
        """What its files are called after; another one than that of samples without a checksum had."""
        return f"{self.name}-{self.samples}-crc"

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

    def sample(self, number: int) -> bytes:
        first = number - number % self._block
        return self._samples_of_block(first)[number - first]

    def _samples_of_block(self, first: int) -> list[bytes]:
        lengths = self.lengths[first : first + self._block].tolist()
        noise = np.random.Generator(np.random.SFC64([_SEED, 1, first])).bytes(sum(lengths))
        samples, start = [], 0
        for number, length in enumerate(lengths, first):
            head, tail = number.to_bytes(_NUMBER, "little"), noise[start + _HEAD : start + length]
            samples.append(head + zlib.crc32(tail, zlib.crc32(head)).to_bytes(4, "little") + tail)
            start += length
        return samples

    def check(self, sample: bytes) -> int:
        """The number of a sample. Raises an error unless its length and checksum are those of that number."""
        number = int.from_bytes(sample[:_NUMBER], "little")
        if number >= self.samples or len(sample) != self.lengths[number]:
            raise WrongContents(f"{self.label}: {len(sample)} bytes that begin with the number {number}")
        crc = zlib.crc32(sample[_HEAD:], zlib.crc32(sample[:_NUMBER]))
        if crc != int.from_bytes(sample[_NUMBER:_HEAD], "little"):
            raise WrongContents(f"{self.label}: sample {number} has a wrong checksum")
        return number


TINY = Shape("512B", 2_000_000, 512, 512)
CIFAR = Shape("3KB", 400_000, 3_073, 3_073)
IMAGENET = Shape("110KB", 40_000, 40_000, 180_000)
# By the word that ``--sizes`` takes.
SHAPES = {"512": TINY, "3073": CIFAR, "imagenet": IMAGENET}


def in_batches(samples: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for sample in samples:
        batch.append(sample)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


class Numbers:
    """The numbers of an epoch in its order, gathered while the clock runs with as little work as possible."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._heads: list[bytes] = []

    def add(self, batch: list[bytes]) -> None:
        self._heads.append(b"".join([sample[:_NUMBER] for sample in batch]))

    def checked(self, *, whole: bool) -> npt.NDArray[np.int64]:
        """All numbers. Raises an error if one came twice or, of a ``whole`` epoch, not at all."""
        numbers = np.frombuffer(b"".join(self._heads), "<u8").astype(np.int64)
        count = self._shape.samples
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= count):
            raise WrongContents(f"{self._shape.label}: a sample came whose number was never written")
        times = np.bincount(numbers, minlength=count)
        if (times > 1).any() or (whole and (times == 0).any()):
            twice, missing = int((times > 1).sum()), int((times == 0).sum())
            raise WrongContents(f"{self._shape.label}: {twice} samples came more than once, {missing} never")
        return numbers


def mixing(numbers: npt.NDArray[np.int64], samples: int) -> float | None:
    """Of how many 256ths of the stored order a batch of 256 has samples, on average; a uniform shuffle gives 162."""
    batches = numbers[: len(numbers) - len(numbers) % BATCH_SIZE].reshape(-1, BATCH_SIZE)
    if len(batches) == 0:
        return None
    parts = np.sort(batches * 256 // samples, axis=1)
    return float((np.diff(parts, axis=1) != 0).sum(axis=1).mean()) + 1
