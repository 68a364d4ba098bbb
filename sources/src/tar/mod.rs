//! Tar archives, such as WebDataset's shards: neighbouring members with the same stem are one sample.
//!
//! ```text
//! header "a/1.cls"  "7"      \
//! header "a/1.jpg"  ff d8 ..  } sample "a/1": attribute label = 7, field jpg
//! header "a/2.cls"  "3"      \
//! header "a/2.jpg"  ff d8 ..  } sample "a/2"
//! zeros
//! ```
//!
//! The stem is the name up to the first dot of its last component. The extension is what follows the dot, in lower
//! case. What the extensions become is inferred from the first 1,000 samples. Names are bytes and become keys; they are
//! never used as paths.
//!
//! The `tar` crate parses blocks of 512 bytes. Going from header to header is done here, because the crate cannot begin
//! in the middle of an archive, accepts names of any length, and does not report a file that is cut inside a payload.

mod bytes;
mod choice;
mod cls;
mod file;
mod groups;
mod header;
mod infer;
mod json;
mod members;
mod shape;
mod source;
mod stream;

pub(crate) use infer::infer_from_stream;
pub(crate) use shape::TarShape;
pub use source::{TarOptions, TarSource};
pub(crate) use stream::StreamSamples;

/// Whether the first bytes of an uncompressed file are a tar archive: a header with a name and the right checksum.
pub fn recognises(head: &[u8]) -> bool {
    matches!(head.first_chunk().map(header::HeaderBlock::parse), Some(header::HeaderBlock::Header(header)) if !header.name.is_empty())
}
