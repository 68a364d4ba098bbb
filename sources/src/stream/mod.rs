//! Samples from a stream that is read once, such as standard input: a tar, compressed or not, or plain records.
//!
//! A stream of records has no header; all numbers are little-endian:
//!
//! ```text
//! key_len: u32 | key | payload_len: u64 | payload | key_len: u32 | ...
//! ```
//!
//! It ends after a payload. Keys have 1 to 65,535 bytes. If `key_len` is 0 in the first record it must be 0 in all
//! records; then the samples have no keys.

mod recorder;
mod records;
mod source;
mod stdin;

pub use source::{StreamFormat, StreamSource};
pub(crate) use stdin::Stoppable;
