//! A unit that is submitted: its reads, and where their bytes are.

use std::mem;
use std::sync::Arc;

use grainstore_store::Location;

use super::cache::{ArrivingExtent, CachedExtent, Reservation};
use crate::ReadError;
use crate::byte_range::ByteRange;
use crate::engine::{self, Buffer, Filled};

/// A submitted unit. It is accessed for every sample, so large and rare parts are boxed.
pub(super) struct ReadUnit {
    pub(super) sample_count: u32,
    /// Samples whose visit has not ended.
    pub(super) unfinished_count: u32,
    /// Whether its lane has begun to visit it. Until then its memory counts as read ahead.
    pub(super) is_visited: bool,
    /// Whether its buffers belong to its batch.
    pub(super) in_place: bool,
    pub(super) part_count: u32,
    /// The first of its reads: nearly always all of them.
    pub(super) parts: [UnitPart; 2],
    /// The others, ascending by offset like the first: there are some where only few samples of an extent are wanted.
    pub(super) more: Vec<UnitPart>,
    /// Bytes of memory of its buffers.
    pub(super) len: u64,
    /// Whether nothing had to be read for it when it was submitted.
    pub(super) was_cached: bool,
    /// Room in the cache for its buffers.
    pub(super) reservation: Option<Box<Reservation>>,
    /// The extent that another unit is reading, and what to read if that fails.
    pub(super) arriving: Option<Box<(ArrivingExtent, Vec<ByteRange>)>>,
    /// Why it is not whole. Reported when it is visited, so after all batches before it.
    pub(super) failed: Option<Box<ReadError>>,
}

/// One of the reads of a unit.
pub(super) struct UnitPart {
    pub(super) range: ByteRange,
    pub(super) state: PartState,
}

pub(super) enum PartState {
    /// The engine has its buffer.
    Reading,
    /// The batch has its bytes, or nothing needs them.
    Taken,
    Filled(Filled),
    /// In the cache, the part with this index.
    Cached(Arc<CachedExtent>, usize),
    /// With the read's buffer.
    Failed(Box<(engine::FileError, Buffer)>),
    /// The failure was reported: a sample that is visited again has to be read again.
    Reported,
}

impl ReadUnit {
    pub(super) fn of(sample_count: u32) -> Self {
        let no_part = || UnitPart { range: ByteRange::default(), state: PartState::Reading };
        Self {
            sample_count,
            unfinished_count: sample_count,
            is_visited: false,
            in_place: false,
            part_count: 0,
            parts: [no_part(), no_part()],
            more: Vec::new(),
            len: 0,
            was_cached: false,
            reservation: None,
            arriving: None,
            failed: None,
        }
    }

    pub(super) fn push(&mut self, part: UnitPart) {
        match self.parts.get_mut(self.part_count as usize) {
            Some(free) => *free = part,
            None => self.more.push(part),
        }
        self.part_count += 1;
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &UnitPart> {
        self.parts.iter().take(self.part_count as usize).chain(&self.more)
    }

    /// Makes an extent of the cache the unit's parts.
    pub(super) fn take_cached(&mut self, cached: &Arc<CachedExtent>) {
        self.part_count = 0;
        self.more = Vec::new();
        for (index, (range, _)) in cached.parts.iter().enumerate() {
            self.push(UnitPart { range: *range, state: PartState::Cached(Arc::clone(cached), index) });
        }
    }

    /// Puts its buffers into the cache once all are filled; gives up the room there if a read has failed.
    pub(super) fn keep_if_whole(&mut self) {
        if self.parts().any(|part| matches!(part.state, PartState::Failed(_))) {
            if let Some(reservation) = &mut self.reservation {
                reservation.give_up();
            }
            return;
        }
        if self.parts().any(|part| !matches!(part.state, PartState::Filled(_))) {
            return;
        }
        let Some(reservation) = self.reservation.take() else { return };
        let mut filled_parts = Vec::with_capacity(self.part_count as usize);
        for part in self.parts.iter_mut().take(self.part_count as usize).chain(&mut self.more) {
            if let PartState::Filled(filled) = mem::replace(&mut part.state, PartState::Taken) {
                filled_parts.push((part.range, filled));
            }
        }
        self.take_cached(&reservation.keep(filled_parts));
    }

    pub(super) fn part(&self, index: u32) -> Option<&UnitPart> {
        let index = index as usize;
        self.parts.get(index).or_else(|| self.more.get(index - self.parts.len()))
    }

    pub(super) fn part_mut(&mut self, index: u32) -> Option<&mut UnitPart> {
        let index = index as usize;
        let first_count = self.parts.len();
        self.parts.get_mut(index).or_else(|| self.more.get_mut(index - first_count))
    }

    /// The index of the part that has a sample.
    pub(super) fn part_of(&self, location: &Location) -> u32 {
        match self.part_count {
            0 | 1 => 0,
            2 => u32::from(!self.parts[0].range.contains(location)),
            _ => self.part_of_many(location),
        }
    }

    #[cold]
    fn part_of_many(&self, location: &Location) -> u32 {
        let begins_before = |part: &UnitPart| part.range.offset <= location.offset;
        let mut count = self.parts.iter().take_while(|part| begins_before(part)).count();
        if count == self.parts.len() {
            count += self.more.partition_point(begins_before);
        }
        let index = u32::try_from(count.saturating_sub(1));
        debug_assert!(index.is_ok(), "parts are counted in 32 bits");
        // No part has this index, which the caller reports as a bug.
        index.unwrap_or(u32::MAX)
    }
}
