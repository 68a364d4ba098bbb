//! The result of a successful read.

use std::ops::Range;
use std::sync::Arc;

use super::{Buffer, OpenFile};

/// The bytes that a successful read delivered: in its buffer, or lent by a mapped file.
#[derive(Debug)]
pub struct Filled {
    buffer: Buffer,
    delivered: Delivered,
}

#[derive(Debug)]
enum Delivered {
    /// Bytes of the buffer.
    Buffer(Range<usize>),
    /// Bytes of a mapped file; the buffer is not used.
    Mapped(Arc<OpenFile>, Range<u64>),
}

impl Filled {
    /// Marks `wanted` as the delivered bytes of `buffer`; for engines.
    ///
    /// # Panics
    /// If the range ends past the buffer: such an engine is already wrong.
    #[must_use]
    pub fn new(buffer: Buffer, wanted: Range<usize>) -> Self {
        assert!(wanted.start <= wanted.end && wanted.end <= buffer.capacity(), "{wanted:?} of {buffer:?}");
        Self { buffer, delivered: Delivered::Buffer(wanted) }
    }

    /// Lends bytes of a mapped file; for engines. The request's buffer is kept to be given back, and is not used.
    ///
    /// # Panics
    /// If the file is not mapped, or ends before the range: see [`Filled::new`].
    #[must_use]
    pub fn mapped(file: Arc<OpenFile>, range: Range<u64>, buffer: Buffer) -> Self {
        assert!(file.mapped(range.clone()).is_some(), "{range:?} of {file:?}");
        Self { buffer, delivered: Delivered::Mapped(file, range) }
    }

    /// All the bytes that the request wanted.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.delivered {
            Delivered::Buffer(wanted) => &self.buffer.as_slice()[wanted.clone()],
            Delivered::Mapped(file, range) => {
                let bytes = file.mapped(range.clone());
                debug_assert!(bytes.is_some(), "`Filled::mapped` has checked it, and a map lives as long as its file");
                bytes.unwrap_or_default()
            }
        }
    }

    /// Where the bytes are in the buffer: not at its start if the read was widened to whole blocks; an empty range if
    /// they are lent by a mapped file.
    #[must_use]
    pub fn wanted(&self) -> Range<usize> {
        match &self.delivered {
            Delivered::Buffer(wanted) => wanted.clone(),
            Delivered::Mapped(..) => 0..0,
        }
    }

    /// Returns the buffer, for the next read. It is an empty one if the bytes are lent, since no buffer was needed.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }
}
