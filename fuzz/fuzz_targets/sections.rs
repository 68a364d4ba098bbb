//! The small sections: bitmaps, segment table, long samples, chunk list, entries, values.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::sections(data));
