"""MosaicML Streaming: shards of MDS, which are local here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contestants import WORKERS, Contestant, as_it_is
from samples import BATCH_SIZE

_COLUMN = "image"


class Mosaic(Contestant):
    name = "MosaicML Streaming"
    package = "mosaicml-streaming"
    modules = ("streaming", "torch.utils.data")
    settings = (
        f"shards of 64 MiB, local, its default shuffle (py1e); StreamingDataset under DataLoader, {WORKERS} workers; "
        "bytes, not decoded"
    )

    def write(self, path: Path, source: Path | None) -> None:
        from streaming import MDSWriter

        with MDSWriter(out=str(path), columns={_COLUMN: "bytes"}) as writer:
            for sample in self.shape:
                writer.write({_COLUMN: sample})

    def open(self, path: Path) -> None:
        from streaming.base.util import clean_stale_shared_memory

        # What a process that was killed has left would be an error.
        clean_stale_shared_memory()
        self._path = str(path)
        self.records = self._dataset(0)

    def _dataset(self, seed: int) -> Any:
        from streaming import StreamingDataset

        return StreamingDataset(local=self._path, shuffle=True, shuffle_seed=seed, batch_size=BATCH_SIZE)

    def payload(self, record: Any) -> bytes:
        return record[_COLUMN]

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        from torch.utils.data import DataLoader

        # Two of them over one folder at a time are refused.
        self.records = None
        batches = DataLoader(
            self._dataset(seed), BATCH_SIZE, num_workers=WORKERS, collate_fn=as_it_is, multiprocessing_context="fork"
        )
        return ([sample[_COLUMN] for sample in batch] for batch in batches)
