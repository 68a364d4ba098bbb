//! Parquet files: whatever the bytes, samples or errors, the same ones each time.
//!
//! The files of the corpus are those of `sources/tests/fixtures/parquet`, which pyarrow wrote: twenty rows of a key,
//! text, bytes, an integer and a truth value in row groups of eight, with the codec that the name says; `v2.bin` has
//! data pages of version 2 and delta encodings, `hf.bin` three rows as Hugging Face's library writes pictures.
//!
//! The decoder is somebody else's, and its panics are caught and become errors: so the hook that ends the process at a
//! panic is taken away, and one that is not caught ends it all the same.
#![no_main]

libfuzzer_sys::fuzz_target!(init: drop(std::panic::take_hook()), |data: &[u8]| grainstore_fuzz::parquet(data));
