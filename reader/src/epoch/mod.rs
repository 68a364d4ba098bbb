//! An epoch: every sample once, or as often as its subset has it, in the order of its plan, batch by batch.
//!
//! The plan determines which bytes are needed when, so they are read ahead as far as memory allows. One walk of it
//! gives both what to read next and which sample comes next. The path of a sample, all in the epoch's own thread:
//!
//! ```text
//! EpochSeries       options -> the plan of this epoch, and of those that follow                    series.rs
//!   EpochPlan       the order, this rank's share of it                                         epoch_plan.rs
//!     | EpochWalk   units (what is read as one), in the order of first need                          walk.rs
//!     v
//! Pipeline          reads ahead within a budget of memory                                        pipeline.rs
//!   ReadSchedule    units not yet submitted, and per lane the next sample: (unit, ordinal)       schedule.rs
//!     | next_unit()          | next_sample(lane)
//!     v                      v
//!   InFlight               Assembler                                             in_flight.rs | assembler.rs
//!   units submitted,       batches under construction: for each sample its
//!   read, being visited;   unit, and where its payload goes in the memory.
//!   their buffers          Large samples are read straight there (a slot)
//!     | wait_for_sample()    |
//!     v                      v
//! BatchMaker        waits for each sample, verifies, copies                                   batch_maker.rs
//!     |
//!     v
//! Channel           a bounded queue of batches -> Epoch, the caller                               channel.rs
//! ```
//!
//! A unit has a number from when it is scheduled until the visit of its last sample ends. `InFlight` is the only owner
//! of units that are submitted; it reads through `SegmentReads` (engine and open files) into buffers of an `Arena`, of
//! the `Cache`, or of a batch.

use std::iter::FusedIterator;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_format::to_usize;
use tracing::Span;

mod arena;
mod assembler;
mod batch_maker;
mod cache;
mod channel;
mod damaged_samples;
mod epoch_plan;
mod in_flight;
mod lane_cursor;
mod needed_bytes;
mod options;
mod pipeline;
mod read_unit;
mod schedule;
mod segment_reads;
mod series;
mod stats;
#[cfg(test)]
mod tests;
mod thread;
mod unit_number;
mod walk;

pub use self::epoch_plan::EpochPlan;
pub use self::options::EpochOptions;
pub use self::stats::{EpochStats, Stages};

use self::batch_maker::Message;
pub(crate) use self::cache::Cache;
use self::series::EpochSeries;
use self::thread::EpochThread;
pub(crate) use self::thread::{EpochInputs, NextEpoch};
use crate::ReadError;
use crate::batch::Batch;
use crate::plan::{Order, Plan, PlanError};
use crate::state::EpochState;

/// An epoch that has begun: an iterator of batches. It ends after the last one, or after an error.
///
/// Dropping it stops it: reads that have begun are waited for, the others are discarded. In a process that was forked
/// from the one that began it, it ends with an error.
pub struct Epoch {
    plan: EpochPlan,
    /// Batches returned.
    batch_count: u64,
    stats: EpochStats,
    wait: Duration,
    /// `None` once it has ended.
    thread: Option<EpochThread>,
    failed: bool,
    span: Span,
    /// Where the thread waits for the next epoch, and the options of that.
    next: Option<(Arc<NextEpoch>, EpochOptions)>,
}

impl Epoch {
    pub(crate) fn new(options: &EpochOptions, inputs: EpochInputs<'_>) -> Result<Self, ReadError> {
        let mut series = EpochSeries::new(inputs.dataset, Arc::clone(&inputs.extents), options)?;
        let plan = series.next()?.ok_or(PlanError::NoSamples)?;
        let next = series.is_followed().then(|| (Arc::clone(inputs.next), options.next()));
        // It lasts as long as the epoch; if nobody listens, nothing is made.
        let span = tracing::info_span!(
            "epoch",
            seed = options.seed,
            epoch = options.epoch,
            order = %plan.order(),
            batches = plan.share().batch_count(),
        );
        span.in_scope(|| tracing::info!("epoch begins"));
        let thread = match inputs.next.take(options, inputs.open_files) {
            Some(thread) => thread,
            None => {
                let engine = inputs.engines.start()?;
                EpochThread::start(options, inputs, engine, series, plan.clone())?
            }
        };
        Ok(Self { span, ..Self::of_thread(plan, thread, next) })
    }

    fn of_thread(plan: EpochPlan, thread: EpochThread, next: Option<(Arc<NextEpoch>, EpochOptions)>) -> Self {
        Self {
            plan,
            batch_count: 0,
            stats: EpochStats::default(),
            wait: Duration::ZERO,
            thread: Some(thread),
            failed: false,
            span: Span::none(),
            next,
        }
    }

    /// Batches of this rank, the same number for every rank: from the epoch's start, or from where it was resumed.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the iterator knows what is left")]
    pub fn len(&self) -> u64 {
        self.plan.share().batch_count()
    }

    /// The order as a function of the position.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.plan.plan()
    }

    /// The order, and this rank's share of it.
    #[must_use]
    pub fn epoch_plan(&self) -> &EpochPlan {
        &self.plan
    }

    /// Where the epoch stands after the batches returned so far. [`EpochOptions::resume`] continues from it, here or in
    /// another process, with any number of ranks.
    #[must_use]
    pub fn state(&self) -> EpochState {
        self.plan.state_after(self.batch_count)
    }

    /// The order, `auto` resolved.
    #[must_use]
    pub fn order(&self) -> Order {
        self.plan.order()
    }

    /// Lanes of the chunked order; `None` in the others.
    #[must_use]
    pub fn lanes(&self) -> Option<u64> {
        self.plan.lanes()
    }

    /// Extents that the chunked order shuffles as one; `None` in the others.
    #[must_use]
    pub fn group(&self) -> Option<NonZeroU32> {
        self.plan.group()
    }

    /// What has been done so far.
    #[must_use]
    pub fn stats(&self) -> EpochStats {
        EpochStats { wait: self.wait, ..self.stats.clone() }
    }

    /// Waits until [`next_batch`](Self::next_batch) would return at once, but for at most `timeout`; for callers that
    /// have to check for signals meanwhile.
    pub fn is_ready_within(&mut self, timeout: Duration) -> bool {
        let begin = Instant::now();
        let is_ready = match &self.thread {
            Some(thread) if thread.channel.is_home() => thread.channel.is_ready_within(timeout),
            _ => true,
        };
        self.wait += begin.elapsed();
        is_ready
    }

    /// The next batch; `None` after the last one, and after an error.
    pub fn next_batch(&mut self) -> Option<Result<Batch, ReadError>> {
        let thread = self.thread.as_ref().filter(|_| !self.failed)?;
        if !thread.channel.is_home() {
            self.thread = None;
            return Some(Err(ReadError::Forked));
        }
        let (message, waited) = thread.channel.take();
        self.wait += waited;
        match message {
            Some(Message::Batch(batch, stats)) => {
                self.batch_count += 1;
                self.stats = *stats;
                Some(Ok(batch))
            }
            Some(Message::End) => {
                self.span.in_scope(|| tracing::info!(batches = self.batch_count, waited = ?self.wait, "epoch ends"));
                self.end();
                None
            }
            Some(Message::Failed(error)) => {
                // The thread stops when the epoch is dropped: it may have to wait for a device, and the error should
                // not.
                self.failed = true;
                Some(Err(error))
            }
            None => {
                self.thread = None;
                Some(Err(ReadError::Bug { what: "the thread of an epoch has panicked" }))
            }
        }
    }

    /// Leaves the thread to the next epoch, if one follows.
    fn end(&mut self) {
        if let (Some(thread), Some((next, options))) = (self.thread.take(), self.next.take()) {
            next.put(options, thread);
        }
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len().saturating_sub(self.batch_count);
        (0, Some(to_usize(left)))
    }
}

impl FusedIterator for Epoch {}

impl std::fmt::Debug for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Epoch")
            .field("plan", &self.plan)
            .field("batch_count", &self.batch_count)
            .finish_non_exhaustive()
    }
}
