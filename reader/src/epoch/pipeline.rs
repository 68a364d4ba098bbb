//! From the plan to the bytes of a visited sample: schedule, batches under construction, and units in flight.
//!
//! Units are submitted in the order of first need as long as those ahead of their need fit the budget, or there are
//! none. So the memory of units consists of those that the lanes are visiting (the window; a unit of one sample is freed
//! after its visit) and of the budget, or of one unit if that is larger. It cannot get stuck: if the unit that is
//! needed next has not been submitted, it is the next one to submit, since all submitted units are needed earlier.

use std::time::{Duration, Instant};

use grainstore_store::Location;

use super::assembler::{Assembler, BatchUnderConstruction};
use super::epoch_plan::EpochPlan;
use super::in_flight::{Arrived, InFlight};
use super::schedule::{ReadSchedule, ScheduledUnit};
use super::stats::EpochStats;
use super::unit_number::UnitNumber;
use crate::ReadError;

/// Units are submitted once there is room for this many bytes, so that they go to the kernel together.
const REFILL_LEN_MAX: u64 = 2 << 20;

/// Bytes that are read ahead while the index is not in memory: enough for the device. Looking up a unit then reads 64
/// KiB of the index or more, and the first batch would wait for it.
const NO_INDEX_LEN_MAX: u64 = 4 << 20;

/// The most units ahead of their need: memory does not bound those whose bytes are in the cache.
const AHEAD_COUNT_MAX: u64 = 1 << 14;

/// Reads ahead within a budget.
pub(super) struct Pipeline {
    pub(super) schedule: ReadSchedule,
    pub(super) assembler: Assembler,
    pub(super) in_flight: InFlight,
    budget: Budget,
    /// Time spent looking units up and laying out batches for them.
    prepare: Duration,
}

/// Bytes that units ahead of their need may take.
struct Budget {
    len_max: u64,
    /// Whether the index is known to be in memory.
    has_index: bool,
}

impl Pipeline {
    /// Reads at most `ahead_len_max` bytes ahead of their need. Nothing is read yet.
    pub(super) fn new(schedule: ReadSchedule, assembler: Assembler, in_flight: InFlight, ahead_len_max: u64) -> Self {
        let budget = Budget { len_max: ahead_len_max, has_index: false };
        Self { schedule, assembler, in_flight, budget, prepare: Duration::ZERO }
    }

    /// Continues with another epoch after those it has.
    pub(super) fn append(&mut self, epoch: &EpochPlan) -> Result<(), ReadError> {
        let first_batch = self.assembler.append(epoch);
        self.schedule.append(epoch, first_batch);
        self.read_ahead()
    }

    /// Lays out the next batch, if that has not been done; `false` after the last.
    pub(super) fn begin_batch(&mut self) -> Result<bool, ReadError> {
        self.assembler.begin_next(&mut self.schedule)
    }

    /// The batch that is being filled.
    pub(super) fn batch(&mut self) -> Result<&mut BatchUnderConstruction, ReadError> {
        self.assembler.current().ok_or_else(|| ReadError::bug("no batch is under construction"))
    }

    /// Waits for a sample of a unit, and submits what has room meanwhile. The caller then calls
    /// [`finish_sample`](Self::finish_sample).
    #[inline]
    pub(super) fn wait_for_sample(&mut self, unit: UnitNumber, location: &Location) -> Result<Arrived, ReadError> {
        if !self.in_flight.is_visited(unit) {
            self.begin_visit(unit)?;
        }
        self.in_flight.wait_for_sample(unit, location)
    }

    /// Ends the visit of a sample: its bytes are not needed any more. After the last sample of a unit, its number is
    /// free.
    #[inline]
    pub(super) fn finish_sample(&mut self, arrived: Arrived) -> Result<(), ReadError> {
        if let Some(number) = self.in_flight.finish_sample(arrived)? {
            self.schedule.release(number);
        }
        Ok(())
    }

    /// Adds what it knows to the statistics.
    pub(super) fn count_into(&self, stats: &mut EpochStats) {
        self.in_flight.count_into(stats);
        stats.stages.prepare = self.prepare + self.assembler.prepare();
    }

    /// Submits units up to this one, which a lane begins to visit.
    fn begin_visit(&mut self, number: UnitNumber) -> Result<(), ReadError> {
        while !self.in_flight.is_submitted(number) {
            let unit = self.schedule.next_unit();
            self.submit(unit.ok_or_else(|| ReadError::bug("the unit of a visited sample was not scheduled"))?)?;
        }
        self.in_flight.begin_visit(number);
        self.read_ahead()
    }

    /// Submits the next units as far as there is room, once there is room for several.
    fn read_ahead(&mut self) -> Result<(), ReadError> {
        let len_max = self.ahead_len_max();
        let refill_len = REFILL_LEN_MAX.min(len_max / 4);
        let ahead = self.in_flight.ahead();
        if ahead.count >= AHEAD_COUNT_MAX || (ahead.count > 0 && ahead.len > len_max - refill_len) {
            return Ok(());
        }
        let begin = Instant::now();
        let posted = self.in_flight.post_time();
        let mut started_len = ahead.len;
        while let Some(unit) = self.schedule.next_unit() {
            if self.in_flight.ahead().count > 0 && !self.has_room(&unit)? {
                self.schedule.put_back(unit);
                break;
            }
            self.submit(unit)?;
            let ahead_len = self.in_flight.ahead().len;
            if ahead_len - started_len >= refill_len {
                // The first time, there is room for many units, and looking them up takes long.
                self.in_flight.poll()?;
                started_len = ahead_len;
            }
        }
        self.prepare += begin.elapsed().saturating_sub(self.in_flight.post_time() - posted);
        self.in_flight.poll()
    }

    fn submit(&mut self, unit: ScheduledUnit) -> Result<(), ReadError> {
        let slot = match unit.in_place {
            Some(address) => self.assembler.lend_slot(address, &mut self.schedule),
            None => None,
        };
        if let (Some(_), Some(address)) = (&slot, unit.in_place)
            && let Some(memory) = self.assembler.memory(address.batch)
        {
            self.in_flight.register(memory);
        }
        self.in_flight.submit(unit, slot)
    }

    /// Bytes that may be ahead of their need now.
    fn ahead_len_max(&mut self) -> u64 {
        let Budget { len_max, has_index } = &mut self.budget;
        *has_index = *has_index || self.in_flight.dataset().is_loaded();
        if *has_index { *len_max } else { NO_INDEX_LEN_MAX.min(*len_max) }
    }

    fn has_room(&mut self, unit: &ScheduledUnit) -> Result<bool, ReadError> {
        let ahead = self.in_flight.ahead();
        let len = ahead.len.saturating_add(unit.memory_len_max());
        if len > self.ahead_len_max() || ahead.count >= AHEAD_COUNT_MAX {
            return Ok(false);
        }
        self.in_flight.has_room()
    }
}
