"""LitData: optimized chunks, which are local here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from contestants import WORKERS, Contestant
from samples import BATCH_SIZE


def copied(batch: list[memoryview]) -> list[bytes]:
    """Its samples are views of a chunk, which a worker cannot send."""
    return [bytes(sample) for sample in batch]


class LitData(Contestant):
    name = "LitData"
    package = "litdata"
    modules = ("litdata", "torch.utils.data")
    settings = f"chunks of 64 MB, local; StreamingDataset(shuffle=True) under StreamingDataLoader, {WORKERS} workers"

    def write(self, path: Path, source: Path | None) -> None:
        from litdata.streaming.writer import BinaryWriter

        # What ``optimize`` calls in its workers.
        path.mkdir()
        writer = BinaryWriter(str(path), chunk_bytes="64MB")
        for number, sample in enumerate(self.shape):
            writer.add_item(number, sample)
        writer.done()
        writer.merge()

    def open(self, path: Path) -> None:
        from litdata import StreamingDataset

        self._path = str(path)
        self.records = StreamingDataset(self._path)

    def payload(self, record: memoryview) -> bytes:
        return bytes(record)

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        from litdata import StreamingDataLoader, StreamingDataset

        dataset = StreamingDataset(self._path, shuffle=True, seed=seed, drop_last=False)
        return iter(StreamingDataLoader(dataset, batch_size=BATCH_SIZE, num_workers=WORKERS, collate_fn=copied))
