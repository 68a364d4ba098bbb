//! Tar archives, WebDataset's shards above all: members of one stem that follow each other are one sample.
//!
//! ```text
//! header "a/1.cls"  "7"      \
//! header "a/1.jpg"  ff d8 ..  } sample "a/1": attribute label = 7, field jpg
//! header "a/2.cls"  "3"      \
//! header "a/2.jpg"  ff d8 ..  } sample "a/2"
//! zeros
//! ```
//!
//! The stem is the name up to the first dot of its last component, the extension all that follows, in lower case. What
//! the extensions become is found from the first 1,000 samples. Names are bytes and keys; they never touch a file
//! system. Blocks of 512 bytes are taken apart by the `tar` crate; walking from header to header is done here, because
//! its archive cannot begin in the middle, holds long names of any length, and takes a file cut inside a payload for
//! whole.

mod bytes;
mod docs;
mod file;
mod groups;
mod header;
mod labels;
mod look;
mod members;
mod passing;
mod shape;
mod source;

pub(crate) use look::look_at_stream;
pub(crate) use passing::Passing;
pub(crate) use shape::TarShape;
pub use source::{TarOptions, TarSource};

/// Whether the first bytes of an uncompressed file are a tar archive: a header with a name and the right checksum.
pub fn recognises(head: &[u8]) -> bool {
    matches!(head.first_chunk().map(header::HeaderBlock::parse), Some(header::HeaderBlock::Header(header)) if !header.name.is_empty())
}
