//! Whole datasets with bytes changed: right answers or errors, and verify knows.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::open(data));
