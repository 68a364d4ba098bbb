//! What a successful read hands back.

use std::ops::Range;
use std::sync::Arc;

use super::{Buffer, OpenFile};

/// The bytes that a successful read delivered: in its buffer, or lent by a mapped file.
#[derive(Debug)]
pub struct Filled {
    buffer: Buffer,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Bytes of the buffer.
    Buffer(Range<usize>),
    /// Bytes of a mapped file; the buffer is unused.
    Map(Arc<OpenFile>, Range<u64>),
}

impl Filled {
    /// Marks `wanted` as the delivered bytes of `buffer`; for engines.
    ///
    /// # Panics
    /// Where the range ends past the buffer: an engine that says so has already gone wrong.
    #[must_use]
    pub fn new(buffer: Buffer, wanted: Range<usize>) -> Self {
        assert!(wanted.start <= wanted.end && wanted.end <= buffer.capacity(), "{wanted:?} of {buffer:?}");
        Self { buffer, place: Place::Buffer(wanted) }
    }

    /// Lends bytes of a mapped file; for engines. The buffer was given for them and is not used.
    ///
    /// # Panics
    /// Where the file is not mapped, or ends before them: see [`Filled::new`].
    #[must_use]
    pub fn mapped(file: Arc<OpenFile>, range: Range<u64>, buffer: Buffer) -> Self {
        assert!(file.mapped(range.clone()).is_some(), "{range:?} of {file:?}");
        Self { buffer, place: Place::Map(file, range) }
    }

    /// The bytes that were asked for, all of them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.place {
            Place::Buffer(wanted) => &self.buffer.as_slice()[wanted.clone()],
            // `mapped` has looked: the file is mapped for as long as it is there.
            Place::Map(file, range) => file.mapped(range.clone()).unwrap_or_default(),
        }
    }

    /// Where in the buffer they lie: not at its start where the read was widened to whole blocks, and nowhere where
    /// they are lent.
    #[must_use]
    pub fn wanted(&self) -> Range<usize> {
        match &self.place {
            Place::Buffer(wanted) => wanted.clone(),
            Place::Map(..) => 0..0,
        }
    }

    /// Gives the buffer back, for the next read; an empty one where the bytes are lent, since none was needed.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }
}
