//! The header: what is accepted is what would be written.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::header(data));
