"""TFRecord files, through tf.data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from contestants import Contestant
from samples import BATCH_SIZE

# Otherwise TensorFlow prints messages when it starts.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Some MB or more each, and as many as are read at a time.
_FILES = 64


class TfData(Contestant):
    name = "tf.data"
    package = "tensorflow-cpu"
    modules = ("tensorflow",)
    settings = (
        f"{_FILES} files, all interleaved in blocks of 16, a shuffle buffer of up to 256 MiB, AUTOTUNE, "
        "deterministic=False; as_numpy_iterator"
    )

    def write(self, path: Path, source: Path | None) -> None:
        import tensorflow as tf

        path.mkdir()
        samples, count = iter(self.shape), self.shape.samples
        for file in range(_FILES):
            with tf.io.TFRecordWriter(f"{path}/samples-{file:05}-of-{_FILES:05}.tfrecord") as writer:
                for sample in islice(samples, count * (file + 1) // _FILES - count * file // _FILES):
                    writer.write(sample)

    def open(self, path: Path) -> None:
        self._names = sorted(map(str, path.glob("*.tfrecord")))

    def epoch(self, seed: int) -> Iterator[list[bytes]]:
        import tensorflow as tf

        options = tf.data.Options()
        options.deterministic = False
        # All files at a time and a large buffer mix as well as tf.data can.
        batches = (
            tf.data.Dataset.from_tensor_slices(self._names)
            .shuffle(len(self._names), seed=seed)
            .interleave(
                tf.data.TFRecordDataset,
                cycle_length=len(self._names),
                block_length=16,
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=False,
            )
            .shuffle(max(BATCH_SIZE, self.window_bytes // self.shape.longest), seed=seed)
            .batch(BATCH_SIZE, num_parallel_calls=tf.data.AUTOTUNE)
            .prefetch(tf.data.AUTOTUNE)
            .with_options(options)
        )
        return (batch.tolist() for batch in batches.as_numpy_iterator())
