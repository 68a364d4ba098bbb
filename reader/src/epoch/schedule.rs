//! The schedule: what is read, in the order of first need, and what each lane visits, in the order of visit.
//!
//! Both come from one walk of the plan. A unit gets a number when it is scheduled, and keeps it until the visit of its
//! last sample. Units that follow each other in one lane and on the device are joined: extents in the order of the
//! dataset are read a megabyte at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::Collection;

use super::cache::{Cache, Supply};
use super::epoch_plan::EpochPlan;
use super::lane_cursor::{ExtentsOfEpochs, LaneCursor, WaitingSamples};
use super::needed_bytes::ranges_of;
use super::unit_number::UnitNumber;
use super::walk::{EpochWalk, UnitVisit, VisitedSamples};
use crate::ReadError;
use crate::batch_builder::is_in_place;
use crate::byte_range::ByteRange;
use crate::plan::{Extents, Subset};

/// Units are joined up to this length: longer reads are no faster, and several shorter ones run in parallel.
const JOINED_LEN_MAX: u64 = 1 << 20;
/// Samples of a joined unit: samples of no bytes do not add to its length.
const JOINED_COUNT_MAX: u32 = 1 << 20;

/// A unit and the bytes that it needs. It is moved several times, and an epoch has as many as samples: rare and large
/// parts are boxed.
pub(super) struct ScheduledUnit {
    pub(super) number: UnitNumber,
    pub(super) lane: u64,
    /// The number of the epoch that visits it.
    pub(super) epoch: u32,
    pub(super) sample_count: u32,
    /// The sample of a batch whose slot the only sample is read into.
    pub(super) in_place: Option<SlotAddress>,
    pub(super) ranges: Result<Vec<ByteRange>, Box<ReadError>>,
    pub(super) supply: Supply,
}

/// A sample of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotAddress {
    /// The batch's number, counted through all epochs of a thread.
    pub(super) batch: u64,
    /// Its index in the batch.
    pub(super) index: usize,
}

/// Schedules units, epoch by epoch.
pub(super) struct ReadSchedule {
    dataset: Collection,
    extents: ExtentsOfEpochs,
    /// Epochs that were appended.
    epoch_count: u32,
    /// The cache, and this thread's number in it.
    cache: Option<(Arc<Cache>, u64)>,
    /// The samples that epochs may visit, of which the cache keeps what it has room for; `None`: all.
    kept: Option<Arc<Subset>>,
    in_place_len_min: u64,
    epochs: VecDeque<ScheduledEpoch>,
    /// A unit that was looked up, and could not be joined with the unit before it.
    looked_up: Option<(ScheduledUnit, VisitedSamples)>,
    unsubmitted: VecDeque<ScheduledUnit>,
    lanes: Vec<LaneCursor>,
    /// Numbers of units that have been removed.
    free_numbers: Vec<UnitNumber>,
    number_count: u32,
}

/// An epoch not all of whose units are scheduled.
struct ScheduledEpoch {
    number: u32,
    plan: EpochPlan,
    walk: EpochWalk,
    /// The number of its first batch.
    first_batch: u64,
}

impl ReadSchedule {
    /// Raw samples from `in_place_len_min` bytes on that are units by themselves are read straight into their batch. The
    /// cache keeps samples of `kept`, or all.
    pub(super) fn new(
        dataset: Collection,
        extents: Arc<Extents>,
        cache: Option<Arc<Cache>>,
        kept: Option<Arc<Subset>>,
        in_place_len_min: u64,
    ) -> Self {
        let cache = cache.map(|cache| {
            let owner = cache.new_number();
            (cache, owner)
        });
        Self {
            dataset,
            extents: ExtentsOfEpochs::new(extents),
            epoch_count: 0,
            cache,
            kept,
            in_place_len_min,
            epochs: VecDeque::new(),
            looked_up: None,
            unsubmitted: VecDeque::new(),
            lanes: Vec::new(),
            free_numbers: Vec::new(),
            number_count: 0,
        }
    }

    /// Continues with another epoch, whose first batch has this number.
    pub(super) fn append(&mut self, plan: &EpochPlan, first_batch: u64) {
        let number = self.epoch_count;
        self.epoch_count = number.wrapping_add(1);
        self.extents.set(number, plan.plan().extents());
        self.epochs.push_back(ScheduledEpoch { number, plan: plan.clone(), walk: EpochWalk::of(plan), first_batch });
    }

    /// Whether all units of the epochs so far are submitted.
    pub(super) fn is_exhausted(&mut self) -> bool {
        self.unsubmitted.is_empty() && !self.schedule_next()
    }

    /// The next unit to be submitted. The caller submits it or puts it back.
    pub(super) fn next_unit(&mut self) -> Option<ScheduledUnit> {
        if self.unsubmitted.is_empty() {
            self.schedule_next();
        }
        self.unsubmitted.pop_front()
    }

    /// Takes back what [`next_unit`](Self::next_unit) returned last.
    pub(super) fn put_back(&mut self, unit: ScheduledUnit) {
        self.unsubmitted.push_front(unit);
    }

    /// The sample that a lane visits next: its unit's number, and its ordinal. Schedules units up to the one that has
    /// it.
    #[inline]
    pub(super) fn next_sample(&mut self, lane: u64) -> Result<(UnitNumber, u64), ReadError> {
        loop {
            if let Some(cursor) = self.lanes.get_mut(to_usize(lane))
                && let Some(sample) = cursor.next(&self.extents)
            {
                return Ok(sample);
            }
            if !self.schedule_next() {
                return Err(ReadError::bug("a lane has fewer samples than its epoch visits"));
            }
        }
    }

    /// The repeat of the sample that [`next_sample`](Self::next_sample) returned last for a lane.
    pub(super) fn repeat(&self, lane: u64) -> u64 {
        self.lanes.get(to_usize(lane)).map_or(0, LaneCursor::repeat)
    }

    /// Takes the number of a unit back after the visit of its last sample.
    pub(super) fn release(&mut self, number: UnitNumber) {
        self.free_numbers.push(number);
    }

    /// Schedules one more unit; `false` after the last.
    fn schedule_next(&mut self) -> bool {
        let Some((mut unit, samples)) = self.look_up() else { return false };
        unit.number = self.free_number();
        self.push_samples(unit.lane, WaitingSamples { unit: unit.number, epoch: unit.epoch, samples });
        while unit.joinable_range().is_some() {
            let Some((later, samples)) = self.look_up() else { break };
            if !unit.join(&later) {
                self.looked_up = Some((later, samples));
                break;
            }
            self.push_samples(unit.lane, WaitingSamples { unit: unit.number, epoch: later.epoch, samples });
        }
        self.unsubmitted.push_back(unit);
        true
    }

    fn push_samples(&mut self, lane: u64, samples: WaitingSamples) {
        let lane = to_usize(lane);
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, LaneCursor::default);
        }
        self.lanes[lane].push(samples);
    }

    /// The next unit, not joined and without a number.
    fn look_up(&mut self) -> Option<(ScheduledUnit, VisitedSamples)> {
        if let Some(looked_up) = self.looked_up.take() {
            return Some(looked_up);
        }
        loop {
            let epoch = self.epochs.front_mut()?;
            let number = epoch.number;
            match epoch.walk.next() {
                Some(visit) => return Some(self.unit_of(visit, number)),
                None => drop(self.epochs.pop_front()),
            }
        }
    }

    fn unit_of(&self, visit: UnitVisit, epoch: u32) -> (ScheduledUnit, VisitedSamples) {
        let UnitVisit { lane, position, samples } = visit;
        let extents = self.extents.of(epoch);
        let mut ranges = ranges_of(&self.dataset, extents, &samples).map_err(Box::new);
        let mut supply = Supply::Read;
        if let (Some((cache, owner)), Ok(own)) = (&self.cache, &ranges) {
            match cache.supply(&self.dataset, self.kept.as_deref(), samples.extent_ordinal(extents), (*owner, own)) {
                Ok(found) => supply = found,
                Err(error) => ranges = Err(Box::new(error)),
            }
        }
        let sample_count = u32::try_from(samples.count()).unwrap_or_else(|_| {
            ranges = Err(Box::new(ReadError::bug("a unit has more samples than 32 bits count")));
            1
        });
        let in_place = match (samples.sole_ordinal(extents), &supply) {
            (Some(ordinal), Supply::Read) => self.slot_of(position, ordinal),
            _ => None,
        };
        (ScheduledUnit { number: UnitNumber::default(), lane, epoch, sample_count, in_place, ranges, supply }, samples)
    }

    /// The slot of a sample that is read straight into its batch.
    fn slot_of(&self, position: u64, ordinal: u64) -> Option<SlotAddress> {
        // If locating it fails, the visit reports that.
        let location = self.dataset.locate(ordinal).ok()?;
        let epoch = self.epochs.front().filter(|_| is_in_place(&location, self.in_place_len_min))?;
        let (batch, index) = epoch.plan.share().batch_of(position);
        Some(SlotAddress { batch: epoch.first_batch + batch, index: to_usize(index) })
    }

    fn free_number(&mut self) -> UnitNumber {
        self.free_numbers.pop().unwrap_or_else(|| {
            // Memory for 2^32 units does not exist.
            debug_assert!(self.number_count < u32::MAX, "units are bounded by memory");
            let number = UnitNumber(self.number_count);
            self.number_count += 1;
            number
        })
    }
}

impl ScheduledUnit {
    /// Bytes of memory that its reads take at most.
    pub(super) fn memory_len_max(&self) -> u64 {
        let ranges = match (&self.supply, &self.ranges) {
            (Supply::ReadAndKeep(_, ranges), _) | (Supply::Read, Ok(ranges)) => ranges.as_slice(),
            (Supply::Cached(_) | Supply::Arriving(_), _) | (_, Err(_)) => &[],
        };
        ranges.iter().map(ByteRange::blocks_len).fold(0, u64::saturating_add)
    }

    /// Joins it with the unit after it, if they follow each other in a lane and on the device. Returns whether it did.
    fn join(&mut self, later: &Self) -> bool {
        let (Some(range), Some(next)) = (self.joinable_range(), later.joinable_range()) else { return false };
        let Some(joined) = range.joined(&next) else { return false };
        let sample_count = self.sample_count.saturating_add(later.sample_count);
        if self.lane != later.lane || joined.len > JOINED_LEN_MAX || sample_count > JOINED_COUNT_MAX {
            return false;
        }
        self.sample_count = sample_count;
        self.ranges = Ok(vec![joined]);
        true
    }

    /// Its only range, if that is short enough to be joined with another.
    fn joinable_range(&self) -> Option<ByteRange> {
        match (self.ranges.as_deref(), &self.supply) {
            (Ok([range]), Supply::Read) if self.in_place.is_none() && range.len < JOINED_LEN_MAX => Some(*range),
            _ => None,
        }
    }
}
