"""LMDB, through py-lmdb: samples under their numbers, written in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contestants import WORKERS, Contestant, as_it_is
from samples import BATCH_SIZE, in_batches

_SAMPLES_PER_TRANSACTION = 1 << 14


def key_of(number: int) -> bytes:
    return number.to_bytes(8, "big")


class Environment:
    """Samples by their numbers; each process opens the environment for itself, at its first sample."""

    def __init__(self, path: Path, count: int, *, readahead: bool) -> None:
        self._path, self._count, self._readahead = str(path), count, readahead
        self.transaction: Any = None

    def opened(self) -> Any:
        if self.transaction is None:
            import lmdb

            # Nobody writes meanwhile, so the transaction stays open and needs no lock.
            self._environment = lmdb.open(self._path, readonly=True, lock=False, readahead=self._readahead)
            self.transaction = self._environment.begin()
        return self.transaction

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> bytes:
        return (self.transaction or self.opened()).get(key_of(number))

    def __getitems__(self, numbers: list[int]) -> list[bytes]:
        # In the order of the keys, so that samples of one page are found together.
        return [sample for _, sample in self.opened().cursor().getmulti([key_of(number) for number in sorted(numbers)])]


class Lmdb(Contestant):
    name = "LMDB"
    package = "lmdb"
    modules = ("lmdb",)
    settings = "readonly, no lock, one transaction; batches by getmulti in the order of keys; readahead left on"
    readahead = True

    def write(self, path: Path, source: Path | None) -> None:
        import lmdb

        # Room for pages that are not full: a sample that is longer than half a page has pages of its own.
        map_size = 2 * self.shape.payload_bytes + 8192 * self.shape.samples + (64 << 20)
        with lmdb.open(str(path), map_size=map_size) as environment:
            first = 0
            for samples in in_batches(self.shape, _SAMPLES_PER_TRANSACTION):
                with environment.begin(write=True) as transaction:
                    for number, sample in enumerate(samples, first):
                        transaction.put(key_of(number), sample, append=True)
                first += len(samples)

    def open(self, path: Path) -> None:
        self.records = Environment(path, self.shape.samples, readahead=self.readahead)
        self.records.opened()
        self.get_batch = self.records.__getitems__

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        return map(self.records.__getitems__, self.permuted_batches(seed))


class LmdbWithoutReadahead(Lmdb):
    name = "LMDB (no readahead)"
    settings = "the same with readahead=False, which its documentation recommends for data larger than memory"
    reads_files_of = "LMDB"
    readahead = False


class LmdbWorkers(Contestant):
    name = f"LMDB ({WORKERS} workers)"
    package = "lmdb"
    modules = ("lmdb", "torch.utils.data")
    settings = f"the same under PyTorch's DataLoader, {WORKERS} forked workers, 4 batches ahead each"
    reads_files_of = "LMDB"

    def open(self, path: Path) -> None:
        # Opened by the workers: an environment does not survive a fork.
        self._environment = Environment(path, self.shape.samples, readahead=True)

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        import torch
        from torch.utils.data import DataLoader

        samples: Any = self._environment
        return iter(
            DataLoader(
                samples,
                BATCH_SIZE,
                shuffle=True,
                num_workers=WORKERS,
                collate_fn=as_it_is,
                prefetch_factor=4,
                multiprocessing_context="fork",
                generator=torch.Generator().manual_seed(seed),
            )
        )
