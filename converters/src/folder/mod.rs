//! Folders of plain files as a source: one file, one sample.
//!
//! A folder in the shape of ImageNet, `class/file` and nothing else, gets the attribute `label` (the number of the
//! class, in the order of the names' bytes) and `class_names` in the user metadata. Any other tree has neither. A key
//! is the file's path below the folder, a payload is the file.

pub mod listing;
mod read;
mod shape;
mod source;
mod window;

pub use source::{FolderOptions, FolderSource, Order};
