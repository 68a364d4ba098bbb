//! The manifest: what is accepted comes back from its own encoding, and leads nowhere else.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::manifest(data));
