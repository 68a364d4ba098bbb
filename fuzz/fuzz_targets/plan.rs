//! The orders of an epoch: every position once, as the naive definition says.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::plan(data));
