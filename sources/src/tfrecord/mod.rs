//! TFRecord files as a source: framed records, each a `tf.train.Example` or bytes that are not parsed.
//!
//! ```text
//! file      record | record | ...                                          framing, records, input
//! record    length u64 | its CRC u32 | data | CRC of the data u32          framing
//! data      Example { Features { map<string, Feature> } }                  example (to write), wire (to read)
//! Feature   a list of bytes, of float or of int64                          -> key, attribute or field: infer, shape,
//! decode
//! ```
//!
//! `wire` finds where the values are without copying them: a feature that is not needed costs nothing, a record needs
//! no memory beyond its own bytes, and the values can be used in place. `SequenceExample` is not parsed; it can be
//! packed as a whole record.

mod decode;
pub mod example;
pub mod framing;
mod infer;
mod input;
mod payload;
mod records;
mod shape;
mod source;
mod wire;

pub use framing::recognises;
pub use source::{TfRecordOptions, TfRecordSource};
