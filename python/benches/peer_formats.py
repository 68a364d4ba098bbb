"""The samples in the formats of other libraries, and epochs of each as its documentation says they are best read.

Each is written by the library's own writer, uncompressed, as the samples are noise. An epoch is opened before the clock
starts; then its batches come. Nobody copies what the library itself does not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from data import BATCH_SIZE, Shape, in_batches, kept

# Memory that samples are drawn from where a library shuffles in memory: as much as ``Loader`` takes.
WINDOW_BYTES = 256 << 20
# Files of TFRecords: some MB or more each, and many more than are read at a time.
_TFRECORD_FILES = 64
# Records that Bagz reads ahead, in its own threads; with its default, or 256, it was slower.
_BAGZ_READ_AHEAD = 4096
# Rows that LanceDB reads at a time, and such reads under way; with its defaults, 64 and 4, it was slower.
_LANCE_READ_ROWS, _LANCE_READS = 4096, 8
# Worker processes, where a library is read through PyTorch's DataLoader.
_WORKERS = 4


def chunks(samples: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Samples that come one by one, as batches."""
    samples = iter(samples)
    while batch := list(islice(samples, BATCH_SIZE)):
        yield batch


# TFRecord, through tf.data.


def tfrecord_files(shape: Shape) -> Path:
    import tensorflow as tf

    def write(path: Path) -> None:
        path.mkdir()
        samples = iter(shape)
        for file in range(_TFRECORD_FILES):
            count = shape.samples * (file + 1) // _TFRECORD_FILES - shape.samples * file // _TFRECORD_FILES
            name = f"{path}/samples-{file:05}-of-{_TFRECORD_FILES:05}.tfrecord"
            with tf.io.TFRecordWriter(name) as writer:
                for sample in islice(samples, count):
                    writer.write(sample)

    return kept(f"{shape.label}-tfrecord", write)


def tf_data(path: Path, shape: Shape, seed: int) -> Iterable[Any]:
    """Files in random order, all read at a time, and a buffer that samples are drawn from.

    Order may depend on timing, which is faster. All files at a time and a large buffer mix as well as tf.data can.
    """
    import tensorflow as tf

    names = sorted(str(name) for name in path.glob("*.tfrecord"))
    options = tf.data.Options()
    options.deterministic = False
    return (
        tf.data.Dataset.from_tensor_slices(names)
        .shuffle(len(names), seed=seed)
        .interleave(
            tf.data.TFRecordDataset,
            cycle_length=len(names),
            block_length=16,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=False,
        )
        .shuffle(max(BATCH_SIZE, WINDOW_BYTES // shape.longest), seed=seed)
        .batch(BATCH_SIZE, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
        .with_options(options)
    )


# LMDB.


def lmdb_key(ordinal: int) -> bytes:
    return ordinal.to_bytes(8, "big")


def lmdb_environment(shape: Shape) -> Path:
    import lmdb

    def write(path: Path) -> None:
        # Room for pages that are not full.
        with lmdb.open(str(path), map_size=2 * shape.payload_bytes + (1 << 28)) as environment:
            first = 0
            for samples in in_batches(shape, 1 << 14):
                with environment.begin(write=True) as transaction:
                    for ordinal, sample in enumerate(samples, first):
                        transaction.put(lmdb_key(ordinal), sample, append=True)
                first += len(samples)

    return kept(f"{shape.label}-lmdb", write)


class Lmdb:
    """Samples by their numbers, a batch in one call; each process opens the environment for itself."""

    def __init__(self, path: Path, count: int, *, readahead: bool) -> None:
        self._path, self._count, self._readahead = str(path), count, readahead
        self._process: int | None = None
        self._cursor: Any = None

    def __len__(self) -> int:
        return self._count

    def __getitems__(self, ordinals: list[int]) -> list[bytes]:
        if self._process != os.getpid():
            import lmdb

            environment = lmdb.open(self._path, readonly=True, lock=False, readahead=self._readahead)
            # A transaction that stays open, as the environment does not change.
            self._cursor, self._process = environment.begin().cursor(), os.getpid()
        # In the order of the keys, so that samples of one page are found together.
        found = self._cursor.getmulti([lmdb_key(ordinal) for ordinal in sorted(ordinals)])
        return [sample for _, sample in found]


def lmdb_epoch(path: Path, shape: Shape, seed: int, *, readahead: bool = True) -> Iterable[list[bytes]]:
    samples = Lmdb(path, shape.samples, readahead=readahead)
    order = np.random.default_rng(seed).permutation(shape.samples).tolist()
    return (samples.__getitems__(order[first : first + BATCH_SIZE]) for first in range(0, len(order), BATCH_SIZE))


def lmdb_without_readahead(path: Path, shape: Shape, seed: int) -> Iterable[list[bytes]]:
    return lmdb_epoch(path, shape, seed, readahead=False)


def lmdb_workers(path: Path, shape: Shape, seed: int) -> Iterable[list[bytes]]:
    import torch
    from torch.utils.data import DataLoader

    torch.manual_seed(seed)
    samples: Any = Lmdb(path, shape.samples, readahead=True)
    # Forked workers start at once; each opens the environment for itself.
    return DataLoader(
        samples,
        BATCH_SIZE,
        shuffle=True,
        num_workers=_WORKERS,
        collate_fn=as_it_is,
        prefetch_factor=4,
        multiprocessing_context="fork",
    )


def as_it_is(batch: list[bytes]) -> list[bytes]:
    return batch


# Bagz.


def bagz_file(shape: Shape) -> Path:
    import bagz

    def write(path: Path) -> None:
        with bagz.Writer(path, bagz.Writer.Options(compression=bagz.CompressionNone())) as writer:
            for sample in shape:
                writer.write(sample)

    return kept(f"{shape.label}.bag", write)


def open_bagz(path: Path) -> Any:
    import bagz

    options = bagz.Reader.Options(
        compression=bagz.CompressionNone(),
        # A lookup less for each record.
        limits_storage=bagz.LimitsStorage.IN_MEMORY,
    )
    return bagz.Reader(path, options)


def bagz_epoch(path: Path, shape: Shape, seed: int) -> Iterable[list[bytes]]:
    reader = open_bagz(path)
    order = np.random.default_rng(seed).permutation(shape.samples).tolist()
    return chunks(reader.read_indices_iter(order, read_ahead=_BAGZ_READ_AHEAD))


# LanceDB.


def lance_table(shape: Shape) -> Path:
    import lancedb
    import pyarrow as pa

    schema = pa.schema({"image": pa.large_binary()})

    def write(path: Path) -> None:
        rows = (pa.record_batch([pa.array(samples, pa.large_binary())], schema) for samples in in_batches(shape, 8192))
        lancedb.connect(path).create_table("samples", pa.RecordBatchReader.from_batches(schema, rows))

    return kept(f"{shape.label}-lance", write)


def column(batch: Any) -> list[bytes]:
    """The rows of a batch as ``bytes``, without a dictionary around each."""
    return batch.column(0).to_pylist()


def lance_dataset(path: Path, seed: int, splits: int) -> Any:
    """Rows shuffled one by one, not in clumps. The permutation is made here, before the clock starts."""
    import lancedb
    from lancedb.streaming import StreamingDataset

    table = lancedb.connect(path).open_table("samples")
    return StreamingDataset(
        table,
        num_splits=splits,
        shuffle_seed=seed,
        columns=["image"],
        read_batch_size=_LANCE_READ_ROWS,
        io_queue_depth=_LANCE_READS,
        transform=column,
    )


def lance_epoch(path: Path, shape: Shape, seed: int) -> Iterable[list[bytes]]:
    return chunks(lance_dataset(path, seed, 1))


def lance_workers(path: Path, shape: Shape, seed: int) -> Iterable[list[bytes]]:
    """Workers that have begun: what they import, and their first batches, are not counted.

    They cannot be forked, as LanceDB has threads, and importing everything would be most of the time.
    """
    from torch.utils.data import DataLoader

    batches = iter(
        DataLoader(
            lance_dataset(path, seed, _WORKERS),
            BATCH_SIZE,
            num_workers=_WORKERS,
            collate_fn=as_it_is,
            prefetch_factor=4,
            multiprocessing_context="forkserver",
        )
    )
    # One of each worker, as they take turns.
    return chain(list(islice(batches, _WORKERS)), batches)


@dataclass(frozen=True)
class Format:
    """A way to read epochs: what writes the samples where they are missing, and what opens an epoch of a seed.

    modules: what is imported before the caches are emptied.
    """

    write: Any
    open: Any
    modules: tuple[str, ...]


PEERS = {
    "tf.data": Format(tfrecord_files, tf_data, ("tensorflow",)),
    "LMDB": Format(lmdb_environment, lmdb_epoch, ("lmdb",)),
    "LMDB, no readahead": Format(lmdb_environment, lmdb_without_readahead, ("lmdb",)),
    "LMDB, DataLoader of 4 workers": Format(lmdb_environment, lmdb_workers, ("lmdb", "torch.utils.data")),
    "Bagz": Format(bagz_file, bagz_epoch, ("bagz",)),
    "LanceDB": Format(lance_table, lance_epoch, ("lancedb.streaming", "pyarrow")),
    "LanceDB, DataLoader of 4 workers": Format(lance_table, lance_workers, ("lancedb.streaming", "torch.utils.data")),
}
