//! The directory: what is accepted is what would be written, and its sections lie end to end.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::directory(data));
