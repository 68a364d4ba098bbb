//! Parquet files: one row, one sample; no Arrow.
//!
//! ```text
//! BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY   a field: text where the file says so, else bytes
//! numbers, dates, truth values       an attribute of the same width; dates and times are their integers
//! a struct                           its members by their dotted names, `image.bytes`
//! struct<bytes, path>                as Hugging Face keeps pictures: `bytes` under the struct's own name, and `path`
//!                                    as the key, where it is there and differs in the first rows
//! lists, decimals, INT96             refused: to convert without them, name the other columns in the mapping
//! ```
//!
//! A part is a row group. Pages are only decoded from the start of a group on, so a group of at most 64 MiB is one
//! block, and a larger one is streamed. Held at a time: of each column that is taken, a page and its dictionary.

mod cells;
mod file;
mod footer;
mod guard;
mod kind;
mod pages;
mod plan;
mod rows;
mod source;

pub use pages::is_contained;
pub use source::{ParquetOptions, ParquetSource};

/// Whether a file that begins like this is Parquet.
pub fn recognises(head: &[u8]) -> bool {
    head.starts_with(file::MAGIC)
}
