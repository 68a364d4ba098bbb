//! A stream of records of any bytes ends in samples or a reason. `two.bin` is the records `a: one` and `bb: second`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::records(data));
