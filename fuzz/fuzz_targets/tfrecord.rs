//! TFRecord files: each sample is the same whether streamed, read by blocks or read in place, whatever the bytes.
//!
//! The files `tensorflow_*.bin` of the corpus were written by TensorFlow: they are those of
//! `sources/tests/fixtures/tfrecord`, dots made underscores, which `tf.io.TFRecordWriter(path, "", "GZIP" or "ZLIB")`
//! writes of `tf.train.Example`s with lists of bytes, int64 and float. `cut.bin` is the first 300 bytes of one.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::tfrecord(data));
