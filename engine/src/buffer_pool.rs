//! A bounded pool of idle buffers, so that reads recycle memory.

use super::buffer::{BLOCK_LEN, Buffer, round_up};
use grainstore_host::ForkLock;
use std::collections::BTreeMap;

/// The largest capacity that the pool rounds up to a power of two.
const CLASS_LEN_MAX: usize = 4 << 20;
/// Capacities between two powers of two above it.
const CLASSES: usize = 8;

/// Idle buffers for the next reads, up to a number of bytes.
///
/// Capacities are powers of two up to 4 MiB, so that a buffer fits the next request of about its
/// size; beyond that the steps are finer, since rounding to a power of two could waste as much again, and an idle
/// buffer serves any request that fills at least four fifths of it. Buffers in use are not counted.
#[derive(Debug)]
pub struct BufferPool {
    retained_len_max: usize,
    idle: ForkLock<IdleBuffers>,
}

#[derive(Debug, Default)]
struct IdleBuffers {
    by_capacity: BTreeMap<usize, Vec<Buffer>>,
    memory_len: usize,
}

impl BufferPool {
    /// Makes an empty pool that keeps at most `retained_len_max` bytes of idle buffers.
    #[must_use]
    pub fn new(retained_len_max: usize) -> Self {
        Self { retained_len_max, idle: ForkLock::default() }
    }

    /// Takes an idle buffer of `len` bytes or more, or allocates one. Its bytes are arbitrary.
    #[must_use]
    pub fn take(&self, len: usize) -> Buffer {
        let capacity = class_capacity(len);
        self.idle(capacity).unwrap_or_else(|| Buffer::with_capacity(capacity))
    }

    /// As [`take`](Self::take); `None` if the system has no memory for it.
    #[must_use]
    pub fn try_take(&self, len: usize) -> Option<Buffer> {
        let capacity = class_capacity(len);
        self.idle(capacity).or_else(|| Buffer::try_with_capacity(capacity))
    }

    /// Gives a buffer back. If the pool is then too full, the largest buffers are freed until it is not.
    pub fn give(&self, buffer: Buffer) {
        if buffer.capacity() == 0 {
            return;
        }
        let Some(mut idle) = self.idle.lock() else { return };
        idle.put(buffer);
        let mut freed = Vec::new();
        while idle.memory_len > self.retained_len_max {
            freed.extend(idle.take_largest());
        }
        drop(idle); // Memory is freed without the lock: that may take a while.
    }

    /// Whether a buffer of `len` bytes may be kept when it is given back.
    pub fn keeps(&self, len: usize) -> bool {
        len <= self.retained_len_max
    }

    /// Bytes of memory that idle buffers take.
    #[must_use]
    pub fn retained_len(&self) -> usize {
        self.idle.lock().map_or(0, |idle| idle.memory_len)
    }

    fn idle(&self, capacity: usize) -> Option<Buffer> {
        self.idle.lock()?.take(capacity)
    }
}

impl IdleBuffers {
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
        self.memory_len -= buffer.as_ref().map_or(0, Buffer::capacity);
        buffer
    }

    fn put(&mut self, buffer: Buffer) {
        self.memory_len += buffer.capacity();
        self.by_capacity.entry(buffer.capacity()).or_default().push(buffer);
    }
}

/// The capacity of a buffer for `len` bytes.
fn class_capacity(len: usize) -> usize {
    match len {
        0 => 0,
        1..=CLASS_LEN_MAX => len.next_power_of_two().max(BLOCK_LEN),
        // On average 6 % larger, which no read touches: batches of slightly different lengths share their memory.
        _ => len.checked_next_multiple_of((1 << len.ilog2()) / CLASSES).unwrap_or_else(|| round_up(len)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_returns_the_same_memory_again_within_a_size_class() {
        let pool = BufferPool::new(1 << 20);
        let buffer = pool.take(70_000);
        assert_eq!(buffer.capacity(), 128 << 10);
        let place = buffer.as_slice().as_ptr().addr();
        pool.give(buffer);
        assert_eq!(pool.retained_len(), 128 << 10);
        assert_ne!(pool.take(60_000).as_slice().as_ptr().addr(), place, "another class");
        assert_eq!(pool.take(128 << 10).as_slice().as_ptr().addr(), place);
        assert_eq!(pool.retained_len(), 0);
    }

    #[test]
    fn large_buffers_are_little_longer_and_serve_requests_that_nearly_fill_them() {
        let pool = BufferPool::new(64 << 20);
        let buffer = pool.take((9 << 20) + 1);
        assert_eq!(buffer.capacity(), 10 << 20);
        let place = buffer.as_slice().as_ptr().addr();
        pool.give(buffer);
        assert_eq!(pool.take(7 << 20).capacity(), 7 << 20, "would leave a third of it unused");
        assert_eq!(pool.take(9 << 20).as_slice().as_ptr().addr(), place);
    }

    #[test]
    fn a_full_pool_frees_the_largest_and_never_exceeds_its_bound() {
        let pool = BufferPool::new(70_000);
        let small = pool.take(4096);
        let large = pool.take(64 << 10);
        pool.give(large);
        assert_eq!(pool.retained_len(), 64 << 10);
        let more: Vec<_> = (0..8).map(|_| pool.take(4096)).collect();
        pool.give(small);
        more.into_iter().for_each(|buffer| pool.give(buffer));
        assert_eq!(pool.retained_len(), 9 * 4096, "the large one made room");
        pool.give(Buffer::with_capacity(1 << 20));
        assert_eq!(pool.retained_len(), 9 * 4096, "one that cannot fit is not kept");
    }

    #[test]
    fn a_request_for_no_bytes_takes_no_memory() {
        let pool = BufferPool::new(1 << 20);
        let nothing = pool.take(0);
        assert_eq!(nothing.capacity(), 0);
        pool.give(nothing);
        assert_eq!(pool.retained_len(), 0);
    }
}
