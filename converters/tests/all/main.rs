//! The tests of the converters in one program, so that what they need is linked once. Beside it is what needs a process
//! of its own: `large_and_many` measures its peak of memory.

#[path = "../common/mod.rs"]
mod common;
mod foreign;
mod stored;

mod adopting;
mod appending;
mod destinations;
mod engine;
mod folder_into_dataset;
mod labelled_folder;
mod listed_rows;
mod unreadable_files;
