"""ArrayRecord, through its data source for random access."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from contestants import Contestant

_FILES = 16


class ArrayRecord(Contestant):
    name = "ArrayRecord"
    package = "array-record"
    modules = ("array_record.python.array_record_data_source",)
    settings = f"{_FILES} files, group_size:1, uncompressed; ArrayRecordDataSource, batches of a permutation by __getitems__"

    def write(self, path: Path, source: Path | None) -> None:
        from array_record.python.array_record_module import ArrayRecordWriter

        path.mkdir()
        count, file, writer = self.shape.samples, -1, None
        for number, sample in enumerate(self.shape):
            if number * _FILES // count != file:
                if writer is not None:
                    writer.close()
                file = number * _FILES // count
                name = f"{path}/samples-{file:05}-of-{_FILES:05}.array_record"
                # Random access needs groups of one; noise does not compress.
                writer = ArrayRecordWriter(name, "group_size:1,uncompressed")
            writer.write(sample)
        if writer is not None:
            writer.close()

    def open(self, path: Path) -> None:
        from array_record.python.array_record_data_source import ArrayRecordDataSource

        self.records = ArrayRecordDataSource(sorted(map(str, path.glob("*.array_record"))))
        self.get_batch = lambda numbers: list(self.records.__getitems__(numbers))

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        return map(self.get_batch, self.permuted_batches(seed))

    def close(self) -> None:
        self.records.__exit__(None, None, None)
