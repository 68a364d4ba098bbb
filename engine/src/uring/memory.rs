//! The memory that the kernel knows, so that it need not pin the pages of a buffer with every read.
//!
//! A region is made known as a whole, when the caller says that many reads will land in it, and forgotten when the last
//! of its buffers is gone. While it is known its pages stay in memory, and the system counts them as locked.

use std::collections::BTreeMap;
use std::io;

use io_uring::IoUring;

use super::ring::pin;
use super::setup::memory_limit;
use crate::Buffer;
use crate::buffer::RegionRef;

/// Parts of regions known at a time.
const PARTS_MAX: u16 = 1024;
/// The longest part that the kernel takes.
const PART_LEN_MAX: usize = 1 << 30;

/// Which memory is known.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By the address of their first byte.
    parts: BTreeMap<usize, Part>,
    free: Vec<u16>,
    /// Why it takes no more regions.
    refusal: Option<String>,
}

#[derive(Debug)]
struct Part {
    number: u16,
    len: usize,
    /// Keeps the memory where it is.
    region: RegionRef,
}

impl Memory {
    pub(super) fn new(io: &IoUring) -> Self {
        let table = io.submitter().register_buffers_sparse(PARTS_MAX.into());
        let refusal = table.err().map(|error| format!("this kernel takes no memory to be registered: {error}"));
        Self { parts: BTreeMap::new(), free: (0..PARTS_MAX).rev().collect(), refusal }
    }

    /// Makes the region of a buffer known, and forgets those that no buffer is left of.
    pub(super) fn register(&mut self, io: &IoUring, buffer: &Buffer) {
        if let Some(region) = buffer.region().filter(|region| !self.parts.contains_key(&region.base().addr())) {
            self.purge(io);
            self.add_all(io, &region);
        }
    }

    /// Makes what `other` knows, which is of another ring, known to this one.
    pub(super) fn register_all_of(&mut self, io: &IoUring, other: &Self) {
        let firsts = other.parts.iter().filter(|&(&start, part)| start == part.region.base().addr());
        firsts.filter(|(_, part)| part.region.has_buffers()).for_each(|(_, part)| self.add_all(io, &part.region));
    }

    fn add_all(&mut self, io: &IoUring, region: &RegionRef) {
        if self.refusal.is_some() || self.parts.contains_key(&region.base().addr()) {
            return;
        }
        let count = region.len().div_ceil(PART_LEN_MAX);
        if count > self.free.len() {
            return;
        }
        if let Err(error) = (0..count).try_for_each(|index| self.add(io, region, index * PART_LEN_MAX)) {
            self.refusal = Some(refusal(&error, region.len()));
            let base = region.base().addr();
            self.forget(io, |part| part.region.base().addr() == base);
        }
    }

    /// The number of the known part that the bytes lie in.
    pub(super) fn part(&self, place: *const u8, len: usize) -> Option<u16> {
        let place = place.addr();
        let (start, part) = self.parts.range(..=place).next_back()?;
        (place - start + len <= part.len).then_some(part.number)
    }

    pub(super) fn len(&self) -> u64 {
        self.parts.values().map(|part| part.len as u64).sum()
    }

    pub(super) fn remark(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    fn add(&mut self, io: &IoUring, region: &RegionRef, start: usize) -> io::Result<()> {
        let Some(number) = self.free.pop() else { return Ok(()) };
        let len = (region.len() - start).min(PART_LEN_MAX);
        let place = region.base().wrapping_add(start);
        if let Err(error) = pin(io, number, place, len) {
            self.free.push(number);
            return Err(error);
        }
        self.parts.insert(place.addr(), Part { number, len, region: region.clone() });
        Ok(())
    }

    fn purge(&mut self, io: &IoUring) {
        self.forget(io, |part| !part.region.has_buffers());
    }

    fn forget(&mut self, io: &IoUring, is_over: impl Fn(&Part) -> bool) {
        let over: Vec<usize> = self.parts.iter().filter(|(_, part)| is_over(part)).map(|(&start, _)| start).collect();
        for part in over.iter().filter_map(|start| self.parts.remove(start)) {
            // Where the kernel does not let go of it, its number stays taken.
            if pin(io, part.number, std::ptr::null_mut(), 0).is_ok() {
                self.free.push(part.number);
            }
        }
    }
}

fn refusal(error: &io::Error, len: usize) -> String {
    let why = match error.kind() {
        io::ErrorKind::OutOfMemory => {
            format!("RLIMIT_MEMLOCK allows a user {}, a region has {len} bytes", memory_limit())
        }
        _ => format!("the kernel says: {error}"),
    };
    format!("memory is not registered with the kernel ({why}): reads cost more CPU time")
}
