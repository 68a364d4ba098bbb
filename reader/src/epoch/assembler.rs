//! Batches under construction: the one that is being filled, and those after it that reads go straight into.
//!
//! Batches are numbered through all epochs of a thread. A batch is laid out when the first sample that is read in place
//! is submitted, or when it is its turn; so there is mostly one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_format::to_usize;
use grainstore_store::Collection;

use super::epoch_plan::EpochPlan;
use super::schedule::{ReadSchedule, SlotAddress};
use super::unit_number::UnitNumber;
use super::walk::LaneTurns;
use crate::ReadError;
use crate::batch_builder::{BatchBuilder, LocatedSample, is_in_place};
use crate::batch_len::check_lists;
use crate::engine::{Buffer, BufferPool};
use crate::plan::Positions;

/// Decoded bytes that may wait, or have memory that waits for them, besides the batch under construction.
pub(super) const DECODED_AHEAD_LEN_MAX: u64 = 256 << 20;

/// Lays out batches in order.
pub(super) struct Assembler {
    dataset: Collection,
    pool: Arc<BufferPool>,
    in_place_len_min: u64,
    /// Epochs with batches that are not laid out.
    epochs: VecDeque<BatchesOfEpoch>,
    /// Laid out and not taken. One that failed reports why when it is its turn.
    laid_out: VecDeque<Result<BatchUnderConstruction, ReadError>>,
    /// Raw bytes of their samples that will be decoded.
    decoded_len: u64,
    /// The number of the first of them.
    first_laid_out: u64,
    /// Batches of all epochs so far.
    batch_count: u64,
    prepare: Duration,
}

/// The batches of an epoch, from number `next` on.
struct BatchesOfEpoch {
    plan: EpochPlan,
    next: u64,
}

/// A batch, the units of its samples, and their positions in the epoch.
pub(super) struct BatchUnderConstruction {
    pub(super) builder: BatchBuilder,
    /// By sample.
    pub(super) units: Arc<[UnitNumber]>,
    pub(super) positions: Positions,
    /// By sample; empty where the epoch has no repeats.
    pub(super) repeats: Vec<u64>,
}

impl Assembler {
    /// Raw samples from `in_place_len_min` bytes on get a slot that a read may go straight into.
    pub(super) fn new(dataset: Collection, pool: Arc<BufferPool>, in_place_len_min: u64) -> Self {
        Self {
            dataset,
            pool,
            in_place_len_min,
            epochs: VecDeque::new(),
            laid_out: VecDeque::new(),
            decoded_len: 0,
            first_laid_out: 0,
            batch_count: 0,
            prepare: Duration::ZERO,
        }
    }

    /// Continues with another epoch after those it has. Returns the number of its first batch.
    pub(super) fn append(&mut self, epoch: &EpochPlan) -> u64 {
        let first_batch = self.batch_count;
        self.batch_count += epoch.share().batch_count();
        self.epochs.push_back(BatchesOfEpoch { plan: epoch.clone(), next: 0 });
        first_batch
    }

    /// Lays out the next batch, if that has not been done; `false` after the last. It stays here, so that reads find
    /// their slots in it, until it is taken.
    pub(super) fn begin_next(&mut self, schedule: &mut ReadSchedule) -> Result<bool, ReadError> {
        // Batches that are laid out for a read are timed where reads are prepared.
        let begin = Instant::now();
        if self.laid_out.is_empty() && !self.lay_out(schedule) {
            return Ok(false);
        }
        self.prepare += begin.elapsed();
        if self.laid_out.front().is_some_and(Result::is_err) {
            self.take_current()?;
        }
        Ok(true)
    }

    /// The batch that is being filled; `None` where none was begun.
    #[inline]
    pub(super) fn current(&mut self) -> Option<&mut BatchUnderConstruction> {
        self.laid_out.front_mut()?.as_mut().ok()
    }

    /// The batch that is being filled, all of whose samples have arrived.
    pub(super) fn take_current(&mut self) -> Result<BatchUnderConstruction, ReadError> {
        let current = self.laid_out.pop_front();
        self.first_laid_out += 1;
        if let Some(Ok(batch)) = &current {
            self.decoded_len -= batch.builder.decoded_len();
        }
        current.unwrap_or_else(|| Err(ReadError::bug("no batch is under construction")))
    }

    /// Lends a slot to a read. `None` where its batch failed, or batches that are laid out have too much memory for
    /// samples that will be decoded: the sample is then read elsewhere and copied.
    pub(super) fn lend_slot(&mut self, address: SlotAddress, schedule: &mut ReadSchedule) -> Option<Buffer> {
        let index = to_usize(address.batch.checked_sub(self.first_laid_out)?);
        while self.laid_out.len() <= index {
            if self.decoded_len > DECODED_AHEAD_LEN_MAX || !self.lay_out(schedule) {
                return None;
            }
        }
        self.laid_out.get_mut(index)?.as_mut().ok()?.builder.lend_slot(address.index)
    }

    /// Memory of a batch that was laid out, if engines may register it.
    pub(super) fn memory(&self, batch: u64) -> Option<&Buffer> {
        let index = to_usize(batch.checked_sub(self.first_laid_out)?);
        self.laid_out.get(index)?.as_ref().ok()?.builder.memory()
    }

    /// Time spent laying out batches whose turn it was.
    pub(super) fn prepare(&self) -> Duration {
        self.prepare
    }

    /// Lays out one more batch; `false` after the last.
    fn lay_out(&mut self, schedule: &mut ReadSchedule) -> bool {
        while let Some(epoch) = self.epochs.front_mut() {
            let share = epoch.plan.share();
            if epoch.next == share.batch_count() {
                self.epochs.pop_front();
                continue;
            }
            let positions = share.positions(epoch.next);
            let turns = LaneTurns::of(epoch.plan.plan(), &positions);
            epoch.next += 1;
            let has_repeats = epoch.plan.plan().extents().has_repeats();
            let batch = self.batch(positions, turns, has_repeats, schedule);
            if let Ok(batch) = &batch {
                self.decoded_len += batch.builder.decoded_len();
            }
            self.laid_out.push_back(batch);
            return true;
        }
        false
    }

    fn batch(
        &self,
        positions: Positions,
        turns: LaneTurns,
        has_repeats: bool,
        schedule: &mut ReadSchedule,
    ) -> Result<BatchUnderConstruction, ReadError> {
        check_lists(positions.count)?;
        let count = to_usize(positions.count);
        let mut units = Vec::with_capacity(count);
        let mut ordinals = Vec::with_capacity(count);
        let mut repeats = Vec::new();
        for lane in turns.take(count) {
            let (unit, ordinal) = schedule.next_sample(lane)?;
            units.push(unit);
            ordinals.push(ordinal);
            if has_repeats {
                repeats.push(schedule.repeat(lane));
            }
        }
        let builder = BatchBuilder::new(self.locate(ordinals)?, Arc::clone(&self.pool), |_, sample| {
            is_in_place(&sample.location, self.in_place_len_min)
        });
        let builder = builder.map_err(|error| error.at_position(positions.first))?;
        Ok(BatchUnderConstruction { builder, units: units.into(), positions, repeats })
    }

    fn locate(&self, ordinals: Vec<u64>) -> Result<Vec<LocatedSample>, ReadError> {
        // The index may still be loading, or may have turned out to be damaged.
        self.dataset.check_load()?;
        let mut locations = Vec::new();
        self.dataset.locate_batch(&ordinals, &mut locations)?;
        let samples = ordinals.into_iter().zip(locations);
        Ok(samples.map(|(ordinal, location)| LocatedSample { ordinal, location }).collect())
    }
}
