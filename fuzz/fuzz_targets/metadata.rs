//! The metadata: what is accepted comes back from its own encoding.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::metadata(data));
