//! The tests of exports in one program, so that what they need is linked once.

mod common;

mod chosen_columns;
mod into_folder;
mod into_lmdb_and_parquet;
mod into_tar;
mod into_tfrecord;
mod nothing_of_others;
