"""Lance's ``take`` and its sampler of batches, and LanceDB's StreamingDataset over the same table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contestants import Contestant, chunks
from samples import BATCH_SIZE, in_batches

_COLUMN, _TABLE = "image", "samples"
_ROWS_PER_WRITE = 8192
# Rows that LanceDB reads at a time, and such reads under way; with its defaults, 64 and 4, it was slower.
_READ_ROWS, _READS = 4096, 8


def rows(batch: Any) -> list[bytes]:
    """The rows of a batch as ``bytes``, without a dictionary around each."""
    return batch.column(0).to_pylist()


class Lance(Contestant):
    name = "Lance"
    package = "pylance"
    modules = ("lance", "pyarrow")
    settings = "one table, a column of large_binary; take of 256 rows in permuted order"
    reads_files_of = "LanceDB"

    def open(self, path: Path) -> None:
        import lance

        self._table = lance.dataset(f"{path}/{_TABLE}.lance")
        self.get_batch = lambda numbers: self._table.take(numbers, columns=[_COLUMN]).column(0).to_pylist()
        self.records = _One(self.get_batch)

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        return map(self.get_batch, self.permuted_batches(seed))


class LanceBatches(Contestant):
    name = "Lance (batch sampler)"
    package = "pylance"
    modules = ("lance.torch.data", "pyarrow")
    settings = "the same table; LanceDataset with ShardedBatchSampler: batches in random order, of neighbouring rows each"
    reads_files_of = "LanceDB"

    def open(self, path: Path) -> None:
        self._uri = f"{path}/{_TABLE}.lance"

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        from lance.sampler import ShardedBatchSampler
        from lance.torch.data import LanceDataset

        sampler = ShardedBatchSampler(0, 1, randomize=True, seed=seed)
        return iter(
            LanceDataset(self._uri, BATCH_SIZE, columns=[_COLUMN], sampler=sampler, to_tensor_fn=lambda batch, **_: rows(batch))
        )


class _One:
    """Samples by their numbers, each a ``take`` of one row: there is no other way."""

    def __init__(self, take: Any) -> None:
        self._take = take

    def __getitem__(self, number: int) -> bytes:
        return self._take([number])[0]


class LanceDb(Contestant):
    name = "LanceDB"
    package = "lancedb"
    modules = ("lancedb.streaming", "pyarrow")
    settings = f"StreamingDataset, rows shuffled one by one, {_READ_ROWS} rows a read, {_READS} reads under way"

    def write(self, path: Path, source: Path | None) -> None:
        import lancedb
        import pyarrow as pa

        schema = pa.schema({_COLUMN: pa.large_binary()})
        # Fewer of large samples, which would be gigabytes at once.
        count = max(1, min(_ROWS_PER_WRITE, (64 << 20) // self.shape.longest))
        batches = (pa.record_batch([pa.array(one, pa.large_binary())], schema) for one in in_batches(self.shape, count))
        lancedb.connect(path).create_table(_TABLE, pa.RecordBatchReader.from_batches(schema, batches))

    def open(self, path: Path) -> None:
        import lancedb

        self._table = lancedb.connect(path).open_table(_TABLE)

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        from lancedb.streaming import StreamingDataset

        # The rows of a read are all in memory.
        count = max(64, min(_READ_ROWS, self.window_bytes // _READS // self.shape.longest))
        samples = StreamingDataset(
            self._table,
            num_splits=1,
            shuffle_seed=seed,
            columns=[_COLUMN],
            read_batch_size=count,
            io_queue_depth=_READS,
            transform=rows,
        )
        return chunks(samples)
