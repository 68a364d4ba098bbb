//! Lists of samples in files of any kind: a row of a list says where one is.
//!
//! ```text
//! path,offset,length,key,label
//! shards/a.bin,128,4000,a-0,3        bytes 128..4128 of shards/a.bin
//! ```
//!
//! A list is CSV, TSV or JSON Lines. Paths are relative to its folder. `key` may be omitted, for all rows.
//! Every other column becomes an attribute, as [`folder`](crate::folder) makes it of a table of labels; text cannot be
//! one, but for the names of classes in `label`. A sample has one field, `data`.
//!
//! Each file that is named is a part, its samples in the order of the list.

mod parts;
mod samples;
mod shape;
mod source;

pub use source::ListSource;
