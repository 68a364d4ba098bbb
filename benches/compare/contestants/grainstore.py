"""grainstore, with its defaults: a dataset of its own, and an adopted one, whose samples stay in tar files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contestants import Contestant
from contestants.webdataset import FIELD
from samples import in_batches


class Grainstore(Contestant):
    name = "grainstore"
    package = "grainstore"
    modules = ("grainstore",)
    settings = (
        "all defaults; ds[i], ds.get_batch, Loader, each as bytes. With less memory than data, window_bytes of a quarter "
        "of the memory, as other shuffle buffers"
    )
    field = "image"

    def write(self, path: Path, source: Path | None) -> None:
        import grainstore

        first = 0
        with grainstore.Writer(path, {self.field: "bytes"}) as writer:
            for samples in in_batches(self.shape, 1024 if self.shape.longest < 1 << 14 else 16):
                keys = [f"sample-{number}" for number in range(first, first + len(samples))]
                writer.write_batch(key=keys, **{self.field: samples})
                first += len(samples)

    def open(self, path: Path) -> None:
        import grainstore

        self.records = grainstore.open(path)
        self.get_batch = lambda numbers: self.records.get_batch(numbers)[self.field].tolist()

    def payload(self, record: Any) -> bytes:
        return record[self.field]

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        import grainstore

        window = {"window_bytes": self.window_bytes} if self.is_limited else {}
        return (batch[self.field].tolist() for batch in grainstore.Loader(self.records, seed=seed, **window))

    def close(self) -> None:
        self.records.close()


class Adopted(Grainstore):
    name = "grainstore (adopted)"
    settings = "all defaults; the index of WebDataset's tar files, which stay where they are"
    writes_from = "WebDataset"
    field = FIELD

    def write(self, path: Path, source: Path | None) -> None:
        import grainstore

        assert source is not None
        grainstore.adopt(sorted(source.glob("*.tar")), path, allow_external=True)

    def open(self, path: Path) -> None:
        import grainstore

        self.records = grainstore.open(path, allow_external=True)
        self.get_batch = lambda numbers: self.records.get_batch(numbers)[self.field].tolist()
