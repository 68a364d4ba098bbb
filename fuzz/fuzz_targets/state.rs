//! States of epochs: what parses is written as it parses.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::state(data));
