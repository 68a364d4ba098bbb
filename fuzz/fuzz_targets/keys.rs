//! The list of keys, and the slots: every key comes back, in as many bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::keys(data));
