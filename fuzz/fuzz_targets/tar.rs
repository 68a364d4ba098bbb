//! Tars: each sample is the same whether streamed, read by blocks, in place or from a stream, whatever the bytes.
//!
//! The files of the corpus were written by other people's programs, one file of a few bytes each: `webdataset.bin` by
//! `webdataset.TarWriter` (two samples of `cls`, `jpg`, `json` and `txt`), `tarfile_pax.bin` and `tarfile_gnu.bin` by
//! Python's `tarfile.open(format=...)` (a name of 150 bytes), `gnu_tar.bin` by `tar -cf` (the same name, a folder and a
//! symbolic link). The zeros at their ends are cut to two blocks; `cut.bin` is the first 1,600 bytes of one.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::tar(data));
