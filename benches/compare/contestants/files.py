"""A file for each sample."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from contestants import WORKERS, Contestant, as_it_is
from samples import BATCH_SIZE

_FILES_PER_FOLDER = 1000
_THREADS = 16
# Batches that the threads read ahead of the loop.
_AHEAD = 4


def read(path: str) -> bytes:
    # Without the buffer that ``open`` makes by default, which would only be one more allocation.
    with open(path, "rb", buffering=0) as file:
        return file.read()


class FilesByName:
    """Samples by their numbers."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def name(self, number: int) -> str:
        # The ending that torchvision's ImageFolder asks for.
        return f"{self._root}/{number // _FILES_PER_FOLDER:05}/{number:08}.jpg"

    def __getitem__(self, number: int) -> bytes:
        return read(self.name(number))


class Files(Contestant):
    name = "files"
    package = None
    settings = "a file per sample, 1,000 in a folder; open, read, close, one after the other"

    def write(self, path: Path, source: Path | None) -> None:
        files = FilesByName(path)
        for number, sample in enumerate(self.shape):
            if number % _FILES_PER_FOLDER == 0:
                Path(files.name(number)).parent.mkdir(parents=True)
            with open(files.name(number), "wb", buffering=0) as file:
                file.write(sample)

    def open(self, path: Path) -> None:
        self.records = FilesByName(path)
        self.get_batch = self._get_batch

    def _get_batch(self, numbers: list[int]) -> list[bytes]:
        records = self.records
        return [records[number] for number in numbers]

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        return (self._get_batch(numbers) for numbers in self.permuted_batches(seed))


class FilesInThreads(Files):
    name = "files (16 threads)"
    settings = f"the same files; {_THREADS} threads, in epochs {_AHEAD} batches ahead"
    reads_files_of = "files"

    def open(self, path: Path) -> None:
        self._pool = ThreadPoolExecutor(_THREADS)
        # One sample alone gains nothing from threads: only batches and epochs are measured.
        files = self._files = FilesByName(path)
        self.get_batch = lambda numbers: list(self._pool.map(files.__getitem__, numbers))

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        under_way: deque[Iterator[bytes]] = deque()
        for numbers in self.permuted_batches(seed):
            under_way.append(self._pool.map(self._files.__getitem__, numbers))
            if len(under_way) > _AHEAD:
                yield list(under_way.popleft())
        while under_way:
            yield list(under_way.popleft())

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class ImageFolder(Contestant):
    name = "ImageFolder"
    package = "torchvision"
    modules = ("torchvision.datasets", "torch.utils.data")
    settings = f"the same files; torchvision's ImageFolder under DataLoader, {WORKERS} workers; bytes, not decoded"
    reads_files_of = "files"
    sizes = ("imagenet",)

    def open(self, path: Path) -> None:
        from torchvision.datasets import ImageFolder as Folder

        self._folder = Folder(path, loader=read)

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        import torch
        from torch.utils.data import DataLoader

        batches = DataLoader(
            self._folder,
            BATCH_SIZE,
            shuffle=True,
            num_workers=WORKERS,
            collate_fn=as_it_is,
            generator=torch.Generator().manual_seed(seed),
        )
        return ([sample for sample, _ in batch] for batch in batches)
