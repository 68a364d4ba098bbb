//! Units in flight: the one owner of what is read and not yet delivered, and of its memory.
//!
//! ```text
//! submit -> | ahead: being read, or read | begin_visit -> | visited: its lane takes its samples | -> removed
//!           | counts against the budget  |                | counts for the window               |
//! ```
//!
//! `finish_sample` removes a unit after its last sample, and its memory goes back to the arena. A failure is reported
//! when its sample is visited, so after all batches before it.

use std::mem;
use std::time::Duration;

use grainstore_store::{Collection, Location};

use super::arena::Arena;
use super::cache::Arrival;
use super::read_unit::{PartState, ReadUnit, UnitPart};
use super::segment_reads::SegmentReads;
use super::stats::EpochStats;
use super::unit_number::UnitNumber;
use crate::ReadError;
use crate::byte_range::ByteRange;
use crate::engine::{self, Buffer, Completion, Failed, Filled};
use crate::open_files::OpenFiles;

mod submit;

/// The token of a read that belongs to no unit. No unit has this number and this part.
const ALONE: u64 = u64::MAX;

/// The units that are submitted, by number.
pub(super) struct InFlight {
    reads: SegmentReads,
    units: Vec<Option<ReadUnit>>,
    arena: Arena,
    ahead: Ahead,
    held_len: u64,
    held_len_max: u64,
    /// The result of reading a sample by itself.
    alone: Option<Result<Filled, Failed>>,
    /// Samples of units whose bytes were in the cache.
    cached_count: u64,
    completions: Vec<Completion>,
}

/// Units that are submitted and not visited yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    pub(super) count: u64,
    /// Bytes of memory.
    pub(super) len: u64,
}

/// Where the bytes of a visited sample are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    unit: UnitNumber,
    part: u32,
    /// Whether they are in its batch.
    pub(super) in_place: bool,
    /// Whether they are missing: the read failed.
    pub(super) failed: bool,
}

impl InFlight {
    /// `expected_len` is about the memory that units take at a time, in bytes.
    pub(super) fn new(reads: SegmentReads, expected_len: u64) -> Self {
        Self {
            reads,
            units: Vec::new(),
            arena: Arena::new(expected_len),
            ahead: Ahead::default(),
            held_len: 0,
            held_len_max: 0,
            alone: None,
            cached_count: 0,
            completions: Vec::new(),
        }
    }

    /// Units that are submitted and not visited yet.
    pub(super) fn ahead(&self) -> Ahead {
        self.ahead
    }

    pub(super) fn is_submitted(&self, unit: UnitNumber) -> bool {
        self.unit(unit).is_some()
    }

    /// Whether a lane has begun to visit the unit.
    #[inline]
    pub(super) fn is_visited(&self, unit: UnitNumber) -> bool {
        self.unit(unit).is_some_and(|unit| unit.is_visited)
    }

    /// Marks a submitted unit as visited by its lane: it is no longer ahead.
    pub(super) fn begin_visit(&mut self, unit: UnitNumber) {
        let Some(unit) = self.units.get_mut(unit.index()).and_then(Option::as_mut) else { return };
        unit.is_visited = true;
        self.ahead.count -= 1;
        self.ahead.len -= unit.len;
        if unit.was_cached {
            self.cached_count += u64::from(unit.sample_count);
        }
    }

    /// Waits for a sample of a visited unit. The caller then calls [`finish_sample`](Self::finish_sample).
    #[inline]
    pub(super) fn wait_for_sample(&mut self, number: UnitNumber, location: &Location) -> Result<Arrived, ReadError> {
        loop {
            let unit = self.unit_mut(number)?;
            if unit.arriving.is_some() {
                self.wait_for_extent(number)?;
                continue;
            }
            if let Some(error) = unit.failed.take() {
                return Err(*error);
            }
            let part = unit.part_of(location);
            let arrived = Arrived { unit: number, part, in_place: unit.in_place, failed: false };
            let Some(UnitPart { range, state }) = unit.part(part) else {
                return Err(ReadError::bug("a unit has no part for a sample"));
            };
            match state {
                PartState::Filled(_) | PartState::Cached(..) => return Ok(arrived),
                PartState::Failed(_) | PartState::Reported => return Ok(Arrived { failed: true, ..arrived }),
                PartState::Taken => return Err(ReadError::bug("a sample's bytes were taken before it was visited")),
                PartState::Reading => {
                    let range = *range;
                    self.wait(range)?;
                }
            }
        }
    }

    /// The stored bytes of a sample that has arrived and is not finished; none where they are in its batch.
    pub(super) fn stored(&self, arrived: Arrived, location: &Location) -> &[u8] {
        match self.unit(arrived.unit).and_then(|unit| unit.part(arrived.part)) {
            Some(UnitPart { range, state: PartState::Filled(filled) }) => range.stored(filled, location),
            Some(UnitPart { range, state: PartState::Cached(cached, part) }) => {
                cached.parts.get(*part).map_or(&[], |(_, filled)| range.stored(filled, location))
            }
            _ => &[],
        }
    }

    /// Moves the slot of a sample that was read into its batch out of its unit.
    pub(super) fn take_slot(&mut self, arrived: Arrived) -> Result<Filled, ReadError> {
        match self.take_part(arrived, PartState::Taken)? {
            PartState::Filled(filled) => Ok(filled),
            _ => Err(ReadError::bug("a slot is not filled")),
        }
    }

    /// Why the bytes of a sample are missing, and the buffer that they were to go to.
    pub(super) fn take_failure(&mut self, arrived: Arrived) -> Result<(engine::FileError, Buffer), ReadError> {
        match self.take_part(arrived, PartState::Reported)? {
            PartState::Failed(failed) => Ok(*failed),
            _ => Err(ReadError::bug("a read that failed has no reason")),
        }
    }

    /// Whether the read that failed was of a sample alone, with no other bytes, and has not been reported.
    pub(super) fn is_alone(&self, arrived: Arrived, location: &Location) -> bool {
        let part = self.unit(arrived.unit).and_then(|unit| unit.part(arrived.part));
        part.is_some_and(|part| {
            matches!(part.state, PartState::Failed(_)) && part.range == ByteRange::of_sample(location)
        })
    }

    /// Takes back the buffer of a read that failed.
    pub(super) fn give(&mut self, arrived: Arrived, buffer: Buffer) {
        match self.unit(arrived.unit).and_then(|unit| unit.reservation.as_deref()) {
            Some(reservation) => reservation.give(buffer),
            None => self.arena.give(buffer),
        }
    }

    /// Reads a sample by itself.
    pub(super) fn read_alone(&mut self, ordinal: u64, location: &Location) -> Result<Filled, ReadError> {
        let range = ByteRange::of_sample(location);
        self.reads.submit(range, ALONE, |len, _| {
            Buffer::try_with_capacity(len).ok_or(ReadError::NoMemory { len: len as u64 })
        })?;
        let result = loop {
            match self.alone.take() {
                Some(result) => break result,
                None => self.wait(range)?,
            }
        };
        result.map_err(|failed| ReadError::unreadable(self.dataset(), ordinal, failed.error))
    }

    /// Ends the visit of a sample. If it was the last one of its unit, removes the unit and returns its number, which
    /// is free again.
    #[inline]
    pub(super) fn finish_sample(&mut self, arrived: Arrived) -> Result<Option<UnitNumber>, ReadError> {
        let unit = self.unit_mut(arrived.unit)?;
        unit.unfinished_count -= 1;
        if unit.unfinished_count > 0 {
            return Ok(None);
        }
        self.remove(arrived.unit)?;
        Ok(Some(arrived.unit))
    }

    /// Starts reads that are only queued and takes what has arrived, without waiting.
    pub(super) fn poll(&mut self) -> Result<(), ReadError> {
        self.reads.poll(&mut self.completions)?;
        self.distribute();
        Ok(())
    }

    /// Waits a moment for reads, when there is nothing else to do; `false` where none is in flight.
    pub(super) fn idle(&mut self) -> Result<bool, ReadError> {
        let has_reads = self.reads.idle(&mut self.completions)?;
        self.distribute();
        Ok(has_reads)
    }

    /// Whether the engine may have one more read in flight.
    pub(super) fn has_room(&mut self) -> Result<bool, ReadError> {
        if !self.reads.has_room() {
            self.poll()?;
        }
        Ok(self.reads.has_room())
    }

    /// Lets the engine register the memory of a batch, into which it reads.
    pub(super) fn register(&mut self, memory: &Buffer) {
        self.reads.engine.register(memory);
    }

    pub(super) fn dataset(&self) -> &Collection {
        &self.reads.dataset
    }

    pub(super) fn files(&self) -> &OpenFiles {
        &self.reads.files
    }

    /// Time spent handing reads to the engine.
    pub(super) fn post_time(&self) -> Duration {
        self.reads.times.post
    }

    /// Adds what it knows to the statistics.
    pub(super) fn count_into(&self, stats: &mut EpochStats) {
        self.reads.count_into(stats);
        stats.cached_samples = self.cached_count;
        stats.held_bytes_max = self.held_len_max;
        stats.slab_bytes = self.arena.slabs_len();
    }

    /// Waits for the extent that another unit reads; if that fails, reads what the unit needs.
    #[cold]
    fn wait_for_extent(&mut self, number: UnitNumber) -> Result<(), ReadError> {
        let Some(arriving) = self.unit_mut(number)?.arriving.take() else { return Ok(()) };
        let (extent, ranges) = *arriving;
        loop {
            match extent.arrival(&ranges) {
                Arrival::Cached(cached) => {
                    self.unit_mut(number)?.take_cached(&cached);
                    return Ok(());
                }
                Arrival::Pending => match ranges.first() {
                    Some(range) => self.wait(*range)?,
                    None => return Err(ReadError::bug("a unit needs no bytes and waits for them")),
                },
                Arrival::Abandoned => break,
            }
        }
        // Taken out of the table, since submitting borrows the rest of `self`.
        let mut unit = self.take_unit(number)?;
        let len_before = unit.len;
        let submitted = self.submit_ranges(&mut unit, ranges, number, None);
        self.hold(unit.len - len_before);
        self.units[number.index()] = Some(unit);
        submitted
    }

    /// Removes a unit and takes its buffers back.
    fn remove(&mut self, number: UnitNumber) -> Result<(), ReadError> {
        if self.unit_mut(number)?.reservation.is_some() {
            // It has more parts than its samples need.
            self.wait_for_all_parts(number)?;
        }
        let unit = self.take_unit(number)?;
        if !unit.in_place {
            self.held_len -= unit.len;
        }
        for part in unit.parts.into_iter().chain(unit.more) {
            let buffer = match part.state {
                PartState::Filled(filled) => filled.into_buffer(),
                PartState::Failed(failed) => failed.1,
                PartState::Cached(..) | PartState::Reading | PartState::Taken | PartState::Reported => continue,
            };
            match &unit.reservation {
                Some(reservation) => reservation.give(buffer),
                None => self.arena.give(buffer),
            }
        }
        Ok(())
    }

    fn wait_for_all_parts(&mut self, number: UnitNumber) -> Result<(), ReadError> {
        loop {
            let missing = self.unit_mut(number)?.parts().find(|part| matches!(part.state, PartState::Reading));
            let Some(range) = missing.map(|part| part.range) else { return Ok(()) };
            self.wait(range)?;
        }
    }

    /// Waits until some read has completed. `needed` is the byte range that the caller needs, for the error.
    fn wait(&mut self, needed: ByteRange) -> Result<(), ReadError> {
        self.reads.wait(needed, &mut self.completions)?;
        self.distribute();
        Ok(())
    }

    /// Passes completions to their units.
    fn distribute(&mut self) {
        for Completion { token, result } in self.completions.drain(..) {
            if token == ALONE {
                self.alone = Some(result);
                continue;
            }
            let (number, part) = unit_and_part(token);
            let unit = self.units.get_mut(number.index()).and_then(Option::as_mut);
            debug_assert!(unit.is_some(), "a unit is held until all of its parts have arrived");
            let Some(unit) = unit else { continue };
            let Some(part) = unit.part_mut(part) else { continue };
            part.state = match result {
                Ok(filled) => PartState::Filled(filled),
                Err(failed) => PartState::Failed(Box::new((failed.error, failed.buffer))),
            };
            if unit.reservation.is_some() {
                unit.keep_if_whole();
            }
        }
    }

    fn hold(&mut self, len: u64) {
        self.held_len += len;
        self.held_len_max = self.held_len_max.max(self.held_len);
    }

    /// Takes what a part has, and leaves it in another state.
    fn take_part(&mut self, arrived: Arrived, left: PartState) -> Result<PartState, ReadError> {
        let part = self.unit_mut(arrived.unit)?.part_mut(arrived.part);
        let part = part.ok_or_else(|| ReadError::bug("a unit has no part for a sample"))?;
        Ok(mem::replace(&mut part.state, left))
    }

    #[inline]
    fn unit(&self, number: UnitNumber) -> Option<&ReadUnit> {
        self.units.get(number.index()).and_then(Option::as_ref)
    }

    #[inline]
    fn unit_mut(&mut self, number: UnitNumber) -> Result<&mut ReadUnit, ReadError> {
        let unit = self.units.get_mut(number.index()).and_then(Option::as_mut);
        unit.ok_or_else(|| ReadError::bug("the unit of a visited sample is not in flight"))
    }

    fn take_unit(&mut self, number: UnitNumber) -> Result<ReadUnit, ReadError> {
        let unit = self.units.get_mut(number.index()).and_then(Option::take);
        unit.ok_or_else(|| ReadError::bug("a removed unit is not in flight"))
    }
}

/// The token of a read: its unit's number, and the index of the part in it.
fn token_of(unit: UnitNumber, part: u32) -> u64 {
    u64::from(unit.0) << 32 | u64::from(part)
}

fn unit_and_part(token: u64) -> (UnitNumber, u32) {
    #[expect(clippy::cast_possible_truncation, reason = "a token is two numbers of 32 bits")]
    (UnitNumber((token >> 32) as u32), token as u32)
}
