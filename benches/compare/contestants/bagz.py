"""Bagz: the strongest of the others on data that fit the page cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from contestants import Contestant, chunks

# Records that are read ahead by its own threads; with its default, or 256, it was slower.
_READ_AHEAD = 4096


class Bagz(Contestant):
    name = "Bagz"
    package = "bagz"
    modules = ("bagz",)
    settings = "one file, uncompressed, limits in memory; r[i] in permuted order, batches by read_indices"

    def write(self, path: Path, source: Path | None) -> None:
        import bagz

        with bagz.Writer(path, bagz.Writer.Options(compression=bagz.CompressionNone())) as writer:
            for sample in self.shape:
                writer.write(sample)

    def open(self, path: Path) -> None:
        import bagz

        # In memory: a lookup less for each record.
        options = bagz.Reader.Options(compression=bagz.CompressionNone(), limits_storage=bagz.LimitsStorage.IN_MEMORY)
        self.records = bagz.Reader(path, options)
        self.get_batch = lambda numbers: list(self.records.read_indices(numbers))

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        records = self.records
        return ([records[number] for number in numbers] for numbers in self.permuted_batches(seed))


class BagzReadAhead(Bagz):
    name = "Bagz (read ahead)"
    settings = f"the same file; read_indices_iter over a permutation, {_READ_AHEAD} records ahead"
    reads_files_of = "Bagz"

    def open(self, path: Path) -> None:
        super().open(path)
        # What one sample and a batch cost is measured without it.
        self._reader, self.records, self.get_batch = self.records, None, None

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        return chunks(self._reader.read_indices_iter(self.permutation(seed), read_ahead=_READ_AHEAD))
