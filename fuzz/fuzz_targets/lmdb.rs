//! Pages of an LMDB file: whatever they say, reading ends, and blocks give what streaming gives.
//!
//! The seeds are files of py-lmdb 3.0 in short: `plain`, `datum`, `named` and `ocr` hold what the files of the same
//! names in `sources/tests/fixtures/lmdb` hold, with fewer and shorter values, and `tree` twelve keys of 481 bytes, so
//! that there is a branch page. Byte 0 is the options; then come
//! runs, (zeros u16, length u16, bytes), as `lmdb.rs` in `src` reads them. To make more, put the pages of any file
//! that the library wrote into runs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::lmdb(data));
