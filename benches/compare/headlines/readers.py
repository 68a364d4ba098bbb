"""Readers that only these papers need: in order instead of shuffled, and shares of an epoch for several processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from contestants import Contestant, chunks
from contestants.grainstore import Grainstore
from contestants.lmdb import Environment, Lmdb, key_of
from contestants.tfrecord import TfData
from samples import BATCH_SIZE


class Shared(Contestant):
    """Somebody whose epoch several processes share."""

    def share(self, rank: int, world_size: int, seed: int) -> Iterator[list[bytes]]:
        """What one of ``world_size`` processes reads; all of them together read every sample once."""
        raise NotImplementedError

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        return self.share(0, 1, seed)


class GrainstoreRanks(Shared, Grainstore):
    name = "grainstore, shuffled"
    settings = "all defaults; Loader(rank=..., world_size=...), as bytes"
    reads_files_of = "grainstore"
    loader: ClassVar[dict[str, Any]] = {}

    def share(self, rank: int, world_size: int, seed: int) -> Iterator[list[bytes]]:
        import grainstore

        batches = grainstore.Loader(self.records, seed=seed, rank=rank, world_size=world_size, **self.loader)
        return (batch[self.field].tolist() for batch in batches)


class GrainstoreInOrder(GrainstoreRanks):
    name = "grainstore, in order"
    settings = 'the same with order="sequential"'
    loader: ClassVar[dict[str, Any]] = {"order": "sequential"}


class GrainstoreBatchesOf32(GrainstoreRanks):
    name = "grainstore, batches of 32"
    settings = "the same with batch_size=32"
    loader: ClassVar[dict[str, Any]] = {"batch_size": 32}


class LmdbByCursor(Shared, Lmdb):
    name = "LMDB, cursor"
    settings = "every process walks all keys by a cursor and takes every world_size-th value, as Caffe's reader does"
    reads_files_of = "LMDB"

    def share(self, rank: int, world_size: int, seed: int) -> Iterator[list[bytes]]:
        return chunks(self._walk(rank, world_size))

    def _walk(self, rank: int, world_size: int) -> Iterator[bytes]:
        cursor = self.records.opened().cursor()
        # The cursor stands on keys; a value that is skipped is neither copied nor touched.
        there, position = cursor.first(), 0
        while there:
            if position % world_size == rank:
                yield cursor.value()
            there, position = cursor.next(), position + 1


class LmdbByKey(LmdbByCursor):
    name = "LMDB, get, no readahead"
    settings = "readahead=False; every process asks for its own keys, every world_size-th, so that none reads the pages of others"

    def open(self, path: Path) -> None:
        self.records = Environment(path, self.shape.samples, readahead=False)
        self.records.opened()

    def _walk(self, rank: int, world_size: int) -> Iterator[bytes]:
        get = self.records.opened().get
        return (get(key_of(number)) for number in range(rank, self.shape.samples, world_size))


class TfDataInOrder(TfData):
    name = "tf.data, in order"
    settings = "TFRecordDataset of the same files, one after the other, batch and prefetch; no shuffle buffer"
    reads_files_of = "tf.data"
    parallel_reads = 1

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        import tensorflow as tf

        options = tf.data.Options()
        options.deterministic = self.parallel_reads == 1
        batches = (
            tf.data.TFRecordDataset(self._names, num_parallel_reads=self.parallel_reads)
            .batch(BATCH_SIZE, num_parallel_calls=tf.data.AUTOTUNE)
            .prefetch(tf.data.AUTOTUNE)
            .with_options(options)
        )
        return (batch.tolist() for batch in batches.as_numpy_iterator())


class TfDataInterleaved(TfDataInOrder):
    name = "tf.data, 16 files at a time"
    settings = "the same with num_parallel_reads=16, deterministic=False"
    parallel_reads = 16
