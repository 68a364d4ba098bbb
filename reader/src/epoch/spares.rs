//! Buffers of units that are done, for the next ones.
//!
//! Unlike the pool of [`crate::engine`], which rounds capacities up to powers of two, this one hands out buffers that
//! fit within an eighth: half of a window must not be slack. Extents of a dataset are about equally long, so that a
//! handful of spares serves all.

use crate::ReadError;
use crate::engine::Buffer;
use crate::run::check_memory;

const COUNT_MAX: usize = 64;

/// A few idle buffers, the latest last.
pub(super) struct Spares {
    buffers: Vec<Buffer>,
    memory_len: u64,
    memory_len_max: u64,
}

impl Spares {
    /// Keeps at most so many bytes of idle buffers.
    pub(super) fn new(memory_len_max: u64) -> Self {
        Self { buffers: Vec::new(), memory_len: 0, memory_len_max }
    }

    /// A buffer for `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Result<Buffer, ReadError> {
        let fits = |buffer: &Buffer| (len..=len.saturating_add(len / 8 + 4096)).contains(&buffer.capacity());
        if let Some(place) = self.buffers.iter().rposition(fits) {
            return Ok(self.remove(place));
        }
        check_memory(len)?;
        Ok(Buffer::with_capacity(len))
    }

    /// Keeps a buffer; where there are too many then, the oldest are freed.
    pub(super) fn give(&mut self, buffer: Buffer) {
        let len = buffer.memory_len() as u64;
        if len == 0 || len > self.memory_len_max {
            return;
        }
        self.memory_len += len;
        self.buffers.push(buffer);
        while self.buffers.len() > COUNT_MAX || self.memory_len > self.memory_len_max {
            drop(self.remove(0));
        }
    }

    /// Bytes of memory that the spares take.
    pub(super) fn memory_len(&self) -> u64 {
        self.memory_len
    }

    fn remove(&mut self, place: usize) -> Buffer {
        let buffer = self.buffers.remove(place);
        self.memory_len -= buffer.memory_len() as u64;
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_serves_what_nearly_fills_it() {
        let mut spares = Spares::new(8 << 20);
        let buffer = spares.take(100_000).unwrap();
        let (place, memory_len) = (buffer.as_slice().as_ptr().addr(), buffer.memory_len() as u64);
        spares.give(buffer);
        assert_eq!(spares.memory_len(), memory_len);
        assert_ne!(spares.take(50_000).unwrap().as_slice().as_ptr().addr(), place);
        assert_eq!(spares.take(99_000).unwrap().as_slice().as_ptr().addr(), place);
        assert_eq!(spares.memory_len(), 0);
    }

    #[test]
    fn spares_are_few_and_the_latest() {
        let mut spares = Spares::new(8 << 20);
        (0..100).for_each(|_| spares.give(Buffer::with_capacity(4096)));
        assert_eq!(spares.buffers.len(), COUNT_MAX);
        (0..100).for_each(|_| spares.give(Buffer::with_capacity(1 << 20)));
        assert!(spares.memory_len() <= 8 << 20);
        assert_eq!((spares.buffers.len(), spares.buffers[0].capacity()), (7, 1 << 20));
        spares.give(Buffer::with_capacity(0));
        spares.give(Buffer::with_capacity(9 << 20));
        assert_eq!(spares.buffers.len(), 7);
    }
}
