//! Parquet files: one row, one sample; no Arrow.
//!
//! ```text
//! BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY   a field: text where the file says so, else bytes
//! numbers, dates, booleans           an attribute of the same width; dates and times are their integers
//! a struct                           its members by their dotted names, `image.bytes`
//! struct<bytes, path>                as Hugging Face stores pictures: `bytes` under the struct's own name, and `path`
//!                                    as the key, where it is present and distinct in the first rows
//! lists of numbers                   an array, of a fixed length if all lists have one
//! decimals without a fraction        an integer, of 18 digits at most
//! other lists and decimals, INT96    refused: to convert without them, leave them out by name
//! ```
//!
//! A part is a row group. It is streamed, because pages can be decoded only from the start of a group. Of each column
//! that is read, one page and the dictionary are in memory.

mod cells;
mod columns;
mod declared;
mod features;
mod file;
mod footer;
mod guard;
mod kind;
mod lists;
mod pages;
mod rows;
mod source;
mod table;

pub use pages::is_contained;
pub use source::{ParquetOptions, ParquetSource};
pub(crate) use table::read_table;

/// Whether a file that begins like this is Parquet.
pub fn recognises(head: &[u8]) -> bool {
    head.starts_with(file::MAGIC)
}
