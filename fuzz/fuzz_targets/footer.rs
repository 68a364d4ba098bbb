//! The footer: what is accepted is what would be written, and its ranges lie in the file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::footer(data));
