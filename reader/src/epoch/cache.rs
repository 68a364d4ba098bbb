//! A cache of whole extents: cached extents stay, and extents for which there is no room are read as without a cache.
//!
//! An epoch needs every sample once, and the next epoch needs them again in another order: what was used last is no
//! more likely to be needed next than anything else. So nothing is ever evicted to make room, and the share of samples
//! that need no read is the share of the bytes that are held. A cache that evicts the oldest would hold nothing that
//! is needed again.
//!
//! It holds the stored bytes of an extent, or what a subset wants of them. They are verified each time they are used.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use grainstore_host::{ForkLock, ProcessId};
use grainstore_store::Collection;

use super::arena::Arena;
use super::needed_bytes::append_wanted;
use crate::ReadError;
use crate::byte_range::ByteRange;
use crate::engine::{Buffer, Filled};
use crate::plan::{Extents, Subset};

/// Extents that epochs of a reader keep.
pub(crate) struct Cache {
    home: ProcessId,
    len_max: u64,
    /// Of all samples.
    extents: Arc<Extents>,
    is_full: AtomicBool,
    /// Numbers that were given: of owners, and of reservations.
    numbers: AtomicU64,
    contents: ForkLock<CacheContents>,
}

struct CacheContents {
    /// By the extent's number.
    entries: HashMap<u32, CacheEntry>,
    /// Bytes of buffers of the entries.
    len: u64,
    arena: Arena,
}

enum CacheEntry {
    /// An epoch is reading these bytes of it.
    Reserved {
        owner: u64,
        reservation: u64,
        ranges: Vec<ByteRange>,
    },
    Cached(Arc<CachedExtent>),
}

/// The bytes of an extent, or those of it that a subset wants.
pub(crate) struct CachedExtent {
    /// Ascending by offset.
    pub(super) parts: Vec<(ByteRange, Filled)>,
}

/// Where a unit's bytes come from.
#[derive(Debug)]
pub(super) enum Supply {
    /// They are read.
    Read,
    /// These are read, which are more than the unit needs, and kept.
    ReadAndKeep(Box<Reservation>, Vec<ByteRange>),
    /// They are in the cache.
    Cached(Arc<CachedExtent>),
    /// An earlier unit of the same thread, perhaps of the epoch before, reads them into the cache.
    Arriving(ArrivingExtent),
}

/// An extent that a unit reads into the cache.
#[derive(Clone)]
pub(super) struct ArrivingExtent {
    cache: Arc<Cache>,
    extent: u32,
    reservation: u64,
}

/// The state of an extent that a unit reads into the cache.
pub(super) enum Arrival {
    Cached(Arc<CachedExtent>),
    Pending,
    /// The read has failed.
    Abandoned,
}

/// Room for an extent that is being read. Dropping it frees the room.
pub(super) struct Reservation {
    cache: Arc<Cache>,
    extent: u32,
    len: u64,
    /// Whether the extent's entry is still this reservation.
    has_entry: bool,
    is_kept: bool,
}

impl Cache {
    pub(crate) fn new(len_max: u64, extents: Arc<Extents>) -> Self {
        let contents = CacheContents { entries: HashMap::new(), len: 0, arena: Arena::new(len_max) };
        Self {
            home: ProcessId::current(),
            len_max,
            extents,
            is_full: AtomicBool::new(false),
            numbers: AtomicU64::new(0),
            contents: ForkLock::new(contents),
        }
    }

    /// Whether this is the process that made it: a forked one does not have its memory.
    pub(crate) fn is_home(&self) -> bool {
        self.home.is_current()
    }

    /// A number for an owner of reservations.
    pub(super) fn new_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Where the bytes come from that samples of one extent need, `ordinal` among them; `ranges` are the reads that
    /// would fetch them.
    pub(super) fn supply(
        self: &Arc<Self>,
        dataset: &Collection,
        subset: Option<&Subset>,
        ordinal: u64,
        (owner, ranges): (u64, &[ByteRange]),
    ) -> Result<Supply, ReadError> {
        let extent = self.extents.extent_of(ordinal, 0);
        match self.contents.lock().as_ref().and_then(|contents| contents.entries.get(&extent)) {
            Some(CacheEntry::Cached(cached)) if cached.covers(ranges) => {
                return Ok(Supply::Cached(Arc::clone(cached)));
            }
            Some(CacheEntry::Reserved { owner: other, reservation, ranges: read })
                if *other == owner && all_covered(ranges, read.iter()) =>
            {
                let reservation = *reservation;
                return Ok(Supply::Arriving(ArrivingExtent { cache: Arc::clone(self), extent, reservation }));
            }
            Some(_) => return Ok(Supply::Read),
            None if self.is_full.load(Ordering::Relaxed) => return Ok(Supply::Read),
            None => {}
        }
        let mut whole = Vec::new();
        append_wanted(dataset, self.extents.samples(extent), subset, &mut whole)?;
        Ok(match self.reserve(extent, owner, &whole) {
            Some(reservation) => Supply::ReadAndKeep(Box::new(reservation), whole),
            None => Supply::Read,
        })
    }

    fn reserve(self: &Arc<Self>, extent: u32, owner: u64, ranges: &[ByteRange]) -> Option<Reservation> {
        let len = ranges.iter().map(ByteRange::blocks_len).fold(0, u64::saturating_add);
        let mut contents = self.contents.lock()?;
        if contents.len.saturating_add(len) > self.len_max {
            self.is_full.store(true, Ordering::Relaxed);
            return None;
        }
        let Entry::Vacant(entry) = contents.entries.entry(extent) else { return None };
        entry.insert(CacheEntry::Reserved { owner, reservation: self.new_number(), ranges: ranges.to_vec() });
        contents.len += len;
        Some(Reservation { cache: Arc::clone(self), extent, len, has_entry: true, is_kept: false })
    }
}

impl CachedExtent {
    /// Whether it has all bytes of `ranges`.
    fn covers(&self, ranges: &[ByteRange]) -> bool {
        all_covered(ranges, self.parts.iter().map(|(part, _)| part))
    }
}

/// Whether each of the ranges is in one of the parts.
fn all_covered<'a>(ranges: &[ByteRange], parts: impl Iterator<Item = &'a ByteRange> + Clone) -> bool {
    ranges.iter().all(|range| parts.clone().any(|part| part.covers(range)))
}

impl ArrivingExtent {
    /// The state of the extent. `ranges` are the bytes of it that are needed.
    pub(super) fn arrival(&self, ranges: &[ByteRange]) -> Arrival {
        match self.cache.contents.lock().as_ref().and_then(|contents| contents.entries.get(&self.extent)) {
            Some(CacheEntry::Cached(cached)) if cached.covers(ranges) => Arrival::Cached(Arc::clone(cached)),
            Some(CacheEntry::Reserved { reservation, .. }) if *reservation == self.reservation => Arrival::Pending,
            // A later read of the same extent, or of a part of it, is not the one to wait for.
            _ => Arrival::Abandoned,
        }
    }
}

impl Reservation {
    /// Memory for a part of the extent.
    pub(super) fn buffer(&self, len: usize) -> Result<Buffer, ReadError> {
        let no_memory = ReadError::NoMemory { len: len as u64 };
        let taken = self.cache.contents.lock().ok_or(no_memory)?.arena.take(len)?;
        Ok(taken.buffer)
    }

    /// Takes a buffer back.
    pub(super) fn give(&self, buffer: Buffer) {
        if let Some(mut contents) = self.cache.contents.lock() {
            contents.arena.give(buffer);
        }
    }

    /// Lets others read the extent, since this read of it has failed. Its room is freed with the buffers.
    pub(super) fn give_up(&mut self) {
        if std::mem::take(&mut self.has_entry)
            && let Some(mut contents) = self.cache.contents.lock()
        {
            contents.entries.remove(&self.extent);
        }
    }

    /// Keeps the extent, all of whose parts have arrived.
    pub(super) fn keep(mut self, parts: Vec<(ByteRange, Filled)>) -> Arc<CachedExtent> {
        let cached = Arc::new(CachedExtent { parts });
        if let Some(mut contents) = self.cache.contents.lock().filter(|_| self.has_entry) {
            contents.entries.insert(self.extent, CacheEntry::Cached(Arc::clone(&cached)));
            self.is_kept = true;
        }
        cached
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        self.give_up();
        if let Some(mut contents) = self.cache.contents.lock() {
            contents.len -= self.len;
            self.cache.is_full.store(false, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for CachedExtent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|(range, _)| range)).finish()
    }
}

impl fmt::Debug for ArrivingExtent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrivingExtent").field("extent", &self.extent).finish_non_exhaustive()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("extent", &self.extent).field("len", &self.len).finish_non_exhaustive()
    }
}
