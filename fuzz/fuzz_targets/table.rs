//! Tables: whatever the bytes, a list's samples are slices of the file that it names, or it is refused.
//!
//! The first byte of a file of the corpus says what it is called: `0` a CSV, `1` a TSV, `2` JSON Lines, `3` none of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::table(data));
