//! Folders of plain files as a source: one file, one sample.
//!
//! If every file is at `class/file`, as in ImageNet, samples have the attribute `label` (the number of the class,
//! sorted by the bytes of the names), and the user metadata has `class_names`. Any other tree has neither. The key is
//! the file's path below the folder, the payload is the file.
//!
//! A table of labels ([`FolderOptions::labels`]) adds an attribute for each column of numbers and a field for each
//! column of text. Several folders become one dataset: keys begin with the folder's name, and the attribute `split` is
//! the number of the folder.

mod known;
mod labels;
pub mod listing;
mod roots;
mod shape;
mod source;

pub use source::{FolderLabels, FolderOptions, FolderSource};
