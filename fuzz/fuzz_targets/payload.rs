//! Stored bytes to a payload: the declared length or nothing, and what a naive LZ4 decoder says.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::payload(data));
