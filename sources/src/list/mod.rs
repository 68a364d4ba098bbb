//! Lists of byte ranges in files of any format: each row of a list is a sample.
//!
//! ```text
//! path,offset,length,key,label
//! shards/a.bin,128,4000,a-0,3        bytes 128..4128 of shards/a.bin
//! ```
//!
//! A list is CSV, TSV or JSON Lines. Paths are relative to its folder. The column `key` is optional. Every other column
//! becomes an attribute, as in a table of labels for a [`folder`](crate::folder). A column of text is refused, except
//! class names in `label`. A sample has one field, `data`.
//!
//! Each file in the list is a part. Its samples are in the order of the list.

mod rows;
mod samples;
mod shape;
mod source;

pub use source::ListSource;
