//! Pictures: any bytes give pixels or an error, and the same ones each time.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::pictures(data));
