//! Registered buffers: the kernel knows their pages by number and need not pin them for every read.
//!
//! A region is registered as a whole, when the caller announces many reads into it, and unregistered when the last of
//! its buffers has been dropped. While it is registered its pages stay in memory, and the system counts them as locked.

use std::collections::BTreeMap;
use std::io;

use io_uring::IoUring;

use super::ring::update_registration;
use super::setup::memory_limit;
use crate::Buffer;
use crate::buffer::RegionRef;

/// The most parts of regions that are registered at a time.
const PARTS_MAX: u16 = 1024;
/// The longest part that the kernel accepts.
const PART_LEN_MAX: usize = 1 << 30;

/// The table of registered memory.
#[derive(Debug, Default)]
pub(super) struct RegisteredBuffers {
    /// By the address of their first byte.
    parts: BTreeMap<usize, RegisteredPart>,
    free: Vec<u16>,
    /// Why no more regions are registered.
    refusal: Option<String>,
}

#[derive(Debug)]
struct RegisteredPart {
    number: u16,
    len: usize,
    /// Keeps the memory allocated.
    region: RegionRef,
}

impl RegisteredBuffers {
    pub(super) fn new(io: &IoUring) -> Self {
        let table = io.submitter().register_buffers_sparse(PARTS_MAX.into());
        let refusal = table.err().map(|error| format!("this kernel registers no memory: {error}"));
        Self { parts: BTreeMap::new(), free: (0..PARTS_MAX).rev().collect(), refusal }
    }

    /// Registers the region of a buffer, and unregisters regions without buffers.
    pub(super) fn register(&mut self, io: &IoUring, buffer: &Buffer) {
        if let Some(region) = buffer.region().filter(|region| !self.parts.contains_key(&region.base().addr())) {
            self.unregister_unused(io);
            self.add_all(io, &region);
        }
    }

    /// Registers all that `other`, the table of another ring, has registered.
    pub(super) fn register_all_of(&mut self, io: &IoUring, other: &Self) {
        let firsts = other.parts.iter().filter(|&(&start, part)| start == part.region.base().addr());
        for (_, part) in firsts.filter(|(_, part)| part.region.has_buffers()) {
            self.add_all(io, &part.region);
        }
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
            self.unregister(io, |part| part.region.base().addr() == base);
        }
    }

    /// The number of the registered part that contains the bytes.
    pub(super) fn part(&self, address: *const u8, len: usize) -> Option<u16> {
        let address = address.addr();
        let (start, part) = self.parts.range(..=address).next_back()?;
        (address - start + len <= part.len).then_some(part.number)
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
        let address = region.base().wrapping_add(start);
        if let Err(error) = update_registration(io, number, address, len) {
            self.free.push(number);
            return Err(error);
        }
        self.parts.insert(address.addr(), RegisteredPart { number, len, region: region.clone() });
        Ok(())
    }

    fn unregister_unused(&mut self, io: &IoUring) {
        self.unregister(io, |part| !part.region.has_buffers());
    }

    fn unregister(&mut self, io: &IoUring, is_unused: impl Fn(&RegisteredPart) -> bool) {
        let unused: Vec<usize> =
            self.parts.iter().filter(|(_, part)| is_unused(part)).map(|(&start, _)| start).collect();
        for part in unused.iter().filter_map(|start| self.parts.remove(start)) {
            // If the kernel refuses to unregister it, its number stays in use.
            if update_registration(io, part.number, std::ptr::null_mut(), 0).is_ok() {
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
        _ => format!("the kernel reports: {error}"),
    };
    format!("memory is not registered with the kernel ({why}): reads cost more CPU time")
}
