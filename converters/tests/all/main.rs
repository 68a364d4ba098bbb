//! The tests of the converters in one program, so that what they need is linked once. `large_and_many` is a program of
//! its own, because it measures the peak memory of its process.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../sources/tests/all/foreign.rs"]
mod foreign;
#[path = "../../../sources/tests/all/shelf.rs"]
mod shelf;
mod stored;

mod adopting;
mod appending;
mod datasets;
mod destinations;
mod engine;
mod folder_into_dataset;
mod labelled_folder;
mod listed_rows;
mod mapping;
mod same_content;
mod unreadable_files;
