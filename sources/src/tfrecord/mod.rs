//! TFRecord files as a source: framed records, each a `tf.train.Example` or bytes that are not parsed.
//!
//! ```text
//! file      record | record | ...                                          framing, records, input
//! record    length u64 | its CRC u32 | data | CRC of the data u32          framing
//! data      Example { Features { map<string, Feature> } }                  example (to write), wire (to read)
//! Feature   a list of bytes, of float or of int64                          -> key, attribute or field: look, shape, fit
//! ```
//!
//! `wire` finds where the values are and copies none of them: a feature that is not wanted costs nothing, a record
//! needs no memory beyond its own bytes, and the values can be read where they are. `SequenceExample` is not taken
//! apart; it can be packed whole.

pub mod example;
mod fit;
pub mod framing;
mod input;
mod look;
mod payload;
mod records;
mod shape;
mod source;
mod wire;

pub use framing::recognises;
pub use source::{TfRecordOptions, TfRecordSource};
