//! Folders of plain files as a source: one file, one sample.
//!
//! A folder in the shape of ImageNet, `class/file` and nothing else, gets the attribute `label` (the number of the
//! class, in the order of the names' bytes) and `class_names` in the user metadata. Any other tree has neither. A key
//! is the file's path below the folder, a payload is the file.
//!
//! A table of labels ([`FolderOptions::labels`]) adds an attribute for each column of numbers and a field for each
//! column of text. Several folders become one dataset: keys begin with the folder's name, and the attribute `split`
//! says which it was.

mod labels;
pub mod listing;
mod roots;
mod shape;
mod source;

pub use source::{FolderOptions, FolderSource};
