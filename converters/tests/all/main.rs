//! The tests of the converters in one program, so that what they need is linked once. Beside it is what needs a process
//! of its own: `large_and_many` measures its peak of memory.

#[path = "../common/mod.rs"]
mod common;
mod stored;
mod tar_support;
mod tfrecord;

mod adopting;
mod appending;
mod destinations;
mod engine;
mod folder_into_dataset;
mod folder_labels;
mod folder_listing;
mod folder_roots;
mod list_source;
mod lmdb_source;
mod parquet_source;
mod stream_source;
mod tar_bad_input;
mod tar_source;
mod tfrecord_source;
mod unreadable_files;
