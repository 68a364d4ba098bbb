//! The memory of an epoch's units: a few slabs of huge pages, from which buffers are cut and to which they return.
//!
//! First fit by address; free neighbours are joined. Extents of a dataset are about equally long, so that little memory
//! is lost between them. Slabs are made as they are needed and stay as long as the arena, so that their memory
//! is allocated, zeroed and registered once. Buffers above half a slab have memory of their own.

use grainstore_format::to_usize;

use crate::ReadError;
use crate::engine::{Buffer, HUGE_LEN};

/// Bytes of a slab, at most.
const SLAB_LEN_MAX: usize = 16 << 20;

/// Cuts buffers from slabs.
pub(super) struct Arena {
    slab_len: usize,
    slabs_len: u64,
    /// Free ranges by address; no two of them touch.
    free: Vec<Buffer>,
}

/// A buffer that was taken from an arena.
pub(super) struct ArenaBuffer {
    pub(super) buffer: Buffer,
    /// Whether it is the first of a new slab, which engines may register with the kernel.
    pub(super) is_of_new_slab: bool,
}

impl Arena {
    /// Makes an empty arena for about `expected_len` bytes at a time.
    pub(super) fn new(expected_len: u64) -> Self {
        let expected_len = to_usize(expected_len).clamp(1, SLAB_LEN_MAX);
        Self { slab_len: expected_len.next_multiple_of(HUGE_LEN), slabs_len: 0, free: Vec::new() }
    }

    /// A buffer for `len` bytes. Its bytes are arbitrary.
    pub(super) fn take(&mut self, len: usize) -> Result<ArenaBuffer, ReadError> {
        if len > self.slab_len / 2 {
            // Its memory is its own and is freed with it.
            let buffer = Buffer::try_with_capacity(len).ok_or(ReadError::NoMemory { len: len as u64 })?;
            return Ok(ArenaBuffer { buffer, is_of_new_slab: false });
        }
        if let Some(buffer) = self.cut(len) {
            return Ok(ArenaBuffer { buffer, is_of_new_slab: false });
        }
        let slab_len = self.slab_len;
        let slab = Buffer::try_slab(slab_len).ok_or(ReadError::NoMemory { len: slab_len as u64 })?;
        self.slabs_len += slab_len as u64;
        self.put(slab);
        let buffer = self.cut(len).ok_or_else(|| ReadError::bug("a new slab has no room for half a slab"))?;
        Ok(ArenaBuffer { buffer, is_of_new_slab: true })
    }

    /// Takes a buffer back that [`take`](Self::take) cut from a slab; frees one that has its own memory.
    pub(super) fn give(&mut self, buffer: Buffer) {
        if buffer.capacity() > 0 && buffer.capacity() <= self.slab_len / 2 {
            self.put(buffer);
        }
    }

    /// Bytes of all slabs.
    pub(super) fn slabs_len(&self) -> u64 {
        self.slabs_len
    }

    fn cut(&mut self, len: usize) -> Option<Buffer> {
        if len == 0 {
            return Some(Buffer::with_capacity(0));
        }
        let index = self.free.iter().position(|free| free.capacity() >= len)?;
        let free = self.free.get_mut(index)?;
        // The end of the range is cut off, so that the rest keeps its index in the list.
        let rest_len = free.capacity() - len.next_multiple_of(crate::engine::BLOCK_LEN);
        let buffer = free.split_off(rest_len);
        if rest_len == 0 {
            self.free.remove(index);
        }
        Some(buffer)
    }

    fn put(&mut self, mut buffer: Buffer) {
        let index = self.free.partition_point(|free| address(free) < address(&buffer));
        if self.free.get(index).is_some_and(|next| buffer.touches(next)) {
            buffer = joined(buffer, self.free.remove(index));
        }
        match index.checked_sub(1).and_then(|before| self.free.get_mut(before)) {
            Some(before) if before.touches(&buffer) => {
                let head = std::mem::replace(before, Buffer::with_capacity(0));
                *before = joined(head, buffer);
            }
            _ => self.free.insert(index, buffer),
        }
    }
}

/// One buffer of two that touch.
fn joined(head: Buffer, tail: Buffer) -> Buffer {
    let joined = head.join(tail);
    debug_assert!(joined.is_ok(), "the buffers touch");
    joined.unwrap_or_else(|(head, _)| head)
}

fn address(buffer: &Buffer) -> usize {
    buffer.as_slice().as_ptr().addr()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(arena: &mut Arena, len: usize) -> Buffer {
        arena.take(len).unwrap().buffer
    }

    #[test]
    fn a_slab_is_as_large_as_is_expected_and_at_most_16_mib() {
        for (expected_len, slab_len) in [(0, 2 << 20), (3 << 20, 4 << 20), (u64::MAX, 16 << 20)] {
            let mut arena = Arena::new(expected_len);
            assert!(arena.take(1).unwrap().is_of_new_slab);
            assert_eq!(arena.slabs_len(), slab_len);
        }
    }

    #[test]
    fn buffers_given_back_are_joined_again() {
        let mut arena = Arena::new(2 << 20);
        let buffers: Vec<Buffer> = (0..8).map(|_| taken(&mut arena, 256 << 10)).collect();
        assert_eq!((arena.slabs_len(), arena.free.len()), (2 << 20, 0));
        let (odd, even): (Vec<_>, Vec<_>) = buffers.into_iter().enumerate().partition(|(i, _)| i % 2 == 1);
        for (_, buffer) in even {
            arena.give(buffer);
        }
        assert_eq!(arena.free.len(), 4);
        for (_, buffer) in odd {
            arena.give(buffer);
        }
        assert_eq!((arena.free.len(), arena.free[0].capacity()), (1, 2 << 20));
    }

    #[test]
    fn a_buffer_larger_than_half_a_slab_has_its_own_memory() {
        let mut arena = Arena::new(2 << 20);
        let lone = taken(&mut arena, (1 << 20) + 1);
        arena.give(lone);
        assert_eq!((arena.slabs_len(), arena.free.len()), (0, 0));
        assert!(matches!(arena.take(usize::MAX), Err(ReadError::NoMemory { .. })));
    }

    proptest! {
        #[test]
        fn buffers_never_overlap_and_all_memory_comes_back(steps in prop::collection::vec((any::<bool>(), 0..900_000_usize), 1..200)) {
            let mut arena = Arena::new(4 << 20);
            let mut out: Vec<(Buffer, u8)> = Vec::new();
            for (number, (takes, len)) in steps.into_iter().enumerate() {
                if takes || out.is_empty() {
                    let mut buffer = taken(&mut arena, len);
                    let mark = u8::try_from(number % 251).unwrap();
                    prop_assert!(buffer.capacity() >= len);
                    for block in buffer.as_mut_slice().chunks_mut(4096) {
                        block[0] = mark;
                    }
                    out.push((buffer, mark));
                } else {
                    let (buffer, mark) = out.swap_remove(len % out.len());
                    prop_assert!(buffer.as_slice().chunks(4096).all(|block| block[0] == mark));
                    arena.give(buffer);
                }
            }
            for (buffer, _) in out {
                arena.give(buffer);
            }
            prop_assert_eq!(arena.free.iter().map(|free| free.capacity() as u64).sum::<u64>(), arena.slabs_len());
            prop_assert!(arena.free.iter().all(|free| free.capacity() == 4 << 20));
        }
    }
}
