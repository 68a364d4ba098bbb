//! The batches that are being filled: the one that is made next, and those ahead of it that reads go straight into.
//!
//! Batches are numbered through all epochs of a run. A batch is laid out when the first sample that is read in place
//! is asked for, or when it is its turn; so mostly there is one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_format::to_usize;
use grainstore_store::{Collection, Location};

use super::epoch_plan::EpochPlan;
use crate::ReadError;
use crate::draft::{Draft, Due, is_in_place};
use crate::engine::{Buffer, BufferPool};
use crate::plan::{Positions, Step, Steps};

/// Lays out batches in order.
pub(super) struct Drafts {
    dataset: Collection,
    pool: Arc<BufferPool>,
    in_place_len_min: u64,
    /// What is to be laid out yet, epoch by epoch.
    orders: VecDeque<Steps>,
    /// Laid out and not taken. One that failed tells why when it is its turn.
    ahead: VecDeque<Result<LaidOut, ReadError>>,
    /// The number of the first of them.
    next_batch: u64,
    prepare: Duration,
}

/// A batch in the making, and where in the epoch its samples stand.
pub(super) struct LaidOut {
    pub(super) draft: Draft,
    pub(super) positions: Positions,
}

impl Drafts {
    pub(super) fn new(dataset: Collection, pool: Arc<BufferPool>, in_place_len_min: u64) -> Self {
        Self {
            dataset,
            pool,
            in_place_len_min,
            orders: VecDeque::new(),
            ahead: VecDeque::new(),
            next_batch: 0,
            prepare: Duration::ZERO,
        }
    }

    /// Goes on with another epoch after those it knows.
    pub(super) fn append(&mut self, epoch: &EpochPlan) {
        self.orders.push_back(epoch.steps(0));
    }

    /// Lays out the next batch, where that has not been done; `false` after the last. It stays here, so that reads find
    /// their slots in it, until it is taken.
    pub(super) fn begin_next(&mut self) -> Result<bool, ReadError> {
        // Those that are laid out for a read are counted where reads are prepared.
        let begin = Instant::now();
        if self.ahead.is_empty() && self.lay_out().is_none() {
            return Ok(false);
        }
        self.prepare += begin.elapsed();
        match self.ahead.front_mut() {
            Some(Err(_)) => self.take_current().map(|_| true),
            Some(Ok(_)) => Ok(true),
            None => Ok(false),
        }
    }

    /// The batch that is being made; `None` where none was begun.
    pub(super) fn current(&mut self) -> Option<&mut LaidOut> {
        self.ahead.front_mut()?.as_mut().ok()
    }

    /// The batch that is being made, all of whose samples are there.
    pub(super) fn take_current(&mut self) -> Result<Option<LaidOut>, ReadError> {
        self.next_batch += u64::from(!self.ahead.is_empty());
        self.ahead.pop_front().transpose()
    }

    /// Whether a sample that is a unit of its own is read into its batch.
    pub(super) fn is_in_place(&self, location: &Location) -> bool {
        is_in_place(location, self.in_place_len_min)
    }

    /// Lends the slot of sample `index` of a batch to a read. `None` where there is none: the batch failed.
    pub(super) fn lend_slot(&mut self, batch: u64, index: usize) -> Option<Buffer> {
        let ahead = to_usize(batch.checked_sub(self.next_batch)?);
        while self.ahead.len() <= ahead {
            self.lay_out()?;
        }
        self.ahead.get_mut(ahead)?.as_mut().ok()?.draft.lend_slot(index)
    }

    /// Memory of a batch that has not been taken, where engines want to know of it.
    pub(super) fn memory(&self, batch: u64) -> Option<&Buffer> {
        let ahead = to_usize(batch.checked_sub(self.next_batch)?);
        self.ahead.get(ahead)?.as_ref().ok().and_then(|laid_out| laid_out.draft.memory())
    }

    /// Time spent so far.
    pub(super) fn prepare(&self) -> Duration {
        self.prepare
    }

    fn lay_out(&mut self) -> Option<()> {
        let Step { positions, ordinals } = self.next_step()?;
        let laid_out = self.due(ordinals).and_then(|due| {
            let in_place = |_: usize, due: &Due| is_in_place(&due.location, self.in_place_len_min);
            let draft = Draft::new(due, in_place, Arc::clone(&self.pool))?;
            Ok(LaidOut { draft, positions })
        });
        self.ahead.push_back(laid_out);
        Some(())
    }

    /// The samples of the next batch, which is of one epoch.
    fn next_step(&mut self) -> Option<Step> {
        loop {
            match self.orders.front_mut()?.next() {
                Some(step) => return Some(step),
                None => drop(self.orders.pop_front()),
            }
        }
    }

    fn due(&self, ordinals: Vec<u64>) -> Result<Vec<Due>, ReadError> {
        // The index may still be on its way from the disk, or may have turned out to be damaged.
        self.dataset.check_load()?;
        let mut locations = Vec::new();
        self.dataset.locate_batch(&ordinals, &mut locations)?;
        Ok(ordinals.into_iter().zip(locations).map(|(ordinal, location)| Due { ordinal, location }).collect())
    }
}
