//! The memory that reads land in: page-aligned buffers, and a bounded pool that recycles them.
//!
//! A direct read needs memory aligned to the device's blocks. A `Buffer` is a vector with a page of
//! slack, used from its first page boundary on: aligned memory without `unsafe`. Its bytes are zero
//! when it is new and whatever the last read left when it is recycled; `Filled` shows only bytes
//! that a read delivered.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that offset, length and memory of a direct read are multiples of.
pub const BLOCK_LEN: usize = 4096;

/// The largest capacity that the pool rounds up to a power of two.
const CLASS_LEN_MAX: usize = 4 << 20;

/// Owned bytes that begin on a 4096-byte boundary of memory.
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    capacity: usize,
}

impl Buffer {
    /// Makes a buffer of `len` zero bytes or more: up to the next multiple of 4096.
    #[must_use]
    pub fn with_capacity(len: usize) -> Self {
        if len == 0 {
            return Self { bytes: Vec::new(), start: 0, capacity: 0 };
        }
        let capacity = round_up(len);
        let bytes = vec![0; capacity.saturating_add(BLOCK_LEN - 1)];
        // The vector never grows, so its address, and with it the boundary, stays.
        let start = bytes.as_ptr().addr().wrapping_neg() % BLOCK_LEN;
        Self { bytes, start, capacity }
    }

    /// Bytes that it holds, a multiple of 4096.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// All of its bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.range()]
    }

    /// All of its bytes, to be written.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let range = self.range();
        &mut self.bytes[range]
    }

    /// Bytes of memory that it takes, slack included.
    #[must_use]
    pub fn memory_len(&self) -> usize {
        self.bytes.len()
    }

    fn range(&self) -> Range<usize> {
        self.start..self.start + self.capacity
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// A buffer after a successful read, and where in it the wanted bytes lie.
#[derive(Debug)]
pub struct Filled {
    buffer: Buffer,
    wanted: Range<usize>,
}

impl Filled {
    /// Marks `wanted` as the delivered bytes of `buffer`; for engines.
    ///
    /// # Panics
    /// Where the range ends past the buffer: an engine that says so has already gone wrong.
    #[must_use]
    pub fn new(buffer: Buffer, wanted: Range<usize>) -> Self {
        assert!(wanted.start <= wanted.end && wanted.end <= buffer.capacity(), "{wanted:?} of {buffer:?}");
        Self { buffer, wanted }
    }

    /// The bytes that were asked for, all of them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.as_slice()[self.wanted.clone()]
    }

    /// Where in the buffer they lie: not at its start where the read was widened to whole blocks.
    #[must_use]
    pub fn wanted(&self) -> Range<usize> {
        self.wanted.clone()
    }

    /// Gives the buffer back, for the next read.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }
}

/// Buffers that wait for their next read: no more than so many bytes of them.
///
/// Capacities are powers of two up to 4 MiB, so that a buffer fits the next request of about its
/// size; beyond that they are exact, since rounding would waste as much again, and a waiting buffer
/// serves any request that fills at least four fifths of it. Buffers in use are not counted.
#[derive(Debug)]
pub struct BufferPool {
    retained_len_max: usize,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    by_capacity: BTreeMap<usize, Vec<Buffer>>,
    memory_len: usize,
}

impl BufferPool {
    /// Makes an empty pool that keeps at most `retained_len_max` bytes of idle buffers.
    #[must_use]
    pub fn new(retained_len_max: usize) -> Self {
        Self { retained_len_max, idle: Mutex::default() }
    }

    /// Takes an idle buffer of `len` bytes or more, or makes one. Its bytes are arbitrary.
    #[must_use]
    pub fn take(&self, len: usize) -> Buffer {
        let capacity = class_capacity(len);
        let idle = self.lock().take(capacity);
        idle.unwrap_or_else(|| Buffer::with_capacity(capacity))
    }

    /// Gives a buffer back. Where the pool is full, the largest buffers are freed until it is not.
    pub fn give(&self, buffer: Buffer) {
        if buffer.capacity() == 0 {
            return;
        }
        let mut idle = self.lock();
        idle.put(buffer);
        let mut freed = Vec::new();
        while idle.memory_len > self.retained_len_max {
            freed.extend(idle.take_largest());
        }
        drop(idle); // Memory goes back to the system without the lock: it may take a while.
    }

    /// Bytes of memory that idle buffers take.
    #[must_use]
    pub fn retained_len(&self) -> usize {
        self.lock().memory_len
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        // Nothing under the lock leaves it half done, so what a panicking thread left is whole.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idle {
    fn take(&mut self, capacity: usize) -> Option<Buffer> {
        let slack = if capacity > CLASS_LEN_MAX { capacity / 4 } else { 0 };
        let (&found, _) = self.by_capacity.range(capacity..=capacity.saturating_add(slack)).next()?;
        self.take_exactly(found)
    }

    fn take_largest(&mut self) -> Option<Buffer> {
        let (&largest, _) = self.by_capacity.last_key_value()?;
        self.take_exactly(largest)
    }

    fn take_exactly(&mut self, capacity: usize) -> Option<Buffer> {
        let stack = self.by_capacity.get_mut(&capacity)?;
        let buffer = stack.pop();
        if stack.is_empty() {
            self.by_capacity.remove(&capacity);
        }
        self.memory_len -= buffer.as_ref().map_or(0, Buffer::memory_len);
        buffer
    }

    fn put(&mut self, buffer: Buffer) {
        self.memory_len += buffer.memory_len();
        self.by_capacity.entry(buffer.capacity()).or_default().push(buffer);
    }
}

/// The capacity of a buffer for `len` bytes.
fn class_capacity(len: usize) -> usize {
    match len {
        0 => 0,
        1..=CLASS_LEN_MAX => len.next_power_of_two().max(BLOCK_LEN),
        _ => round_up(len),
    }
}

fn round_up(len: usize) -> usize {
    len.checked_next_multiple_of(BLOCK_LEN).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_on_a_block_of_memory_and_hold_whole_blocks() {
        for len in [1, 511, 4095, 4096, 4097, 100_000, 5 << 20] {
            let mut buffer = Buffer::with_capacity(len);
            assert_eq!(buffer.as_slice().as_ptr().addr() % BLOCK_LEN, 0, "{len}");
            assert_eq!(buffer.capacity(), len.div_ceil(BLOCK_LEN) * BLOCK_LEN);
            assert_eq!(buffer.as_mut_slice().len(), buffer.capacity());
            assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
        }
        assert_eq!(Buffer::with_capacity(0).memory_len(), 0);
    }

    #[test]
    fn a_moved_buffer_keeps_its_bytes_and_its_alignment() {
        let mut buffer = Buffer::with_capacity(4096);
        buffer.as_mut_slice()[4095] = 7;
        let moved = [Some(buffer)].map(|slot| slot.unwrap());
        assert_eq!(moved[0].as_slice()[4095], 7);
        assert_eq!(moved[0].as_slice().as_ptr().addr() % BLOCK_LEN, 0);
    }

    #[test]
    fn a_filled_buffer_shows_the_wanted_bytes_and_no_others() {
        let mut buffer = Buffer::with_capacity(10);
        buffer.as_mut_slice()[..4].copy_from_slice(b"abcd");
        let filled = Filled::new(buffer, 1..3);
        assert_eq!((filled.bytes(), filled.wanted()), (b"bc".as_slice(), 1..3));
        assert_eq!(filled.into_buffer().capacity(), 4096);
    }

    #[test]
    fn a_pool_hands_the_same_memory_out_again_within_a_size_class() {
        let pool = BufferPool::new(1 << 20);
        let buffer = pool.take(70_000);
        assert_eq!(buffer.capacity(), 128 << 10);
        let place = buffer.as_slice().as_ptr().addr();
        pool.give(buffer);
        assert_eq!(pool.retained_len(), (128 << 10) + 4095);
        assert_ne!(pool.take(60_000).as_slice().as_ptr().addr(), place, "another class");
        assert_eq!(pool.take(128 << 10).as_slice().as_ptr().addr(), place);
        assert_eq!(pool.retained_len(), 0);
    }

    #[test]
    fn large_buffers_are_exact_and_serve_requests_that_nearly_fill_them() {
        let pool = BufferPool::new(64 << 20);
        let buffer = pool.take((10 << 20) + 1);
        assert_eq!(buffer.capacity(), (10 << 20) + 4096);
        let place = buffer.as_slice().as_ptr().addr();
        pool.give(buffer);
        assert_eq!(pool.take(7 << 20).capacity(), 7 << 20, "would leave a third of it unused");
        assert_eq!(pool.take(9 << 20).as_slice().as_ptr().addr(), place);
    }

    #[test]
    fn a_full_pool_frees_the_largest_and_never_exceeds_its_bound() {
        let pool = BufferPool::new(100_000);
        let (small, large) = (pool.take(4096), pool.take(64 << 10));
        pool.give(large);
        assert_eq!(pool.retained_len(), (64 << 10) + 4095);
        let more: Vec<_> = (0..8).map(|_| pool.take(4096)).collect();
        pool.give(small);
        more.into_iter().for_each(|buffer| pool.give(buffer));
        assert_eq!(pool.retained_len(), 9 * 8191, "the large one made room");
        pool.give(Buffer::with_capacity(1 << 20));
        assert_eq!(pool.retained_len(), 9 * 8191, "one that cannot fit is not kept");
    }

    #[test]
    fn a_request_for_no_bytes_takes_no_memory() {
        let pool = BufferPool::new(1 << 20);
        let nothing = pool.take(0);
        assert_eq!(nothing.memory_len(), 0);
        pool.give(nothing);
        assert_eq!(pool.retained_len(), 0);
    }
}
