//! The tests of the sources in one program, so that what they need is linked once.

mod foreign;
mod shelf;
mod tar_support;
mod tfrecord;

mod attribute_tables;
mod blocks;
mod choices;
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
