//! An epoch: every sample once, in the order of its plan, batch by batch.
//!
//! The plan says which bytes are needed when, so they are read ahead as far as memory allows. A thread of the epoch's
//! own reads, verifies and copies ([`runner`]); who asks for batches finds them in a queue.

use std::iter::FusedIterator;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use grainstore_format::to_usize;
use grainstore_store::Collection;

mod arena;
mod cache;
mod damaged;
mod drafts;
mod epoch_plan;
mod fetch;
mod handoff;
mod lane;
mod options;
mod planned;
mod planning;
mod runner;
mod stats;
#[cfg(test)]
mod tests;
mod unit;
mod units;
mod wanted;

pub use self::epoch_plan::EpochPlan;
pub use self::options::EpochOptions;
pub use self::stats::{EpochStats, Stages};

pub(crate) use self::cache::Cache;
use self::damaged::Damaged;
use self::drafts::Drafts;
use self::fetch::{Fetch, FetchBounds};
use self::handoff::{Bounds, Handoff};
use self::planning::Planning;
use self::runner::{Item, Progress, Runner};
use crate::ReadError;
use crate::batch::Batch;
use crate::check::Checkers;
use crate::engine::{BufferPool, Engine, EngineError};
use crate::engine_pool::EnginePool;
use crate::open_files::OpenFiles;
use crate::patience::Patience;
use crate::plan::{Extents, LONE_SAMPLE_CHUNKS, Order, Plan, PlanError};
use crate::state::EpochState;
use grainstore_host::Shared;

/// Batches that wait for the caller: so many, or so many bytes, but two of any size.
const QUEUE: Bounds = Bounds { count_max: 64, len_max: 8 << 20 };
/// Bytes of batches' memory that are kept for later ones.
const POOL_LEN: usize = 64 << 20;

/// One epoch on its way: an iterator of batches. It ends after the last one, or after an error.
///
/// Dropping it stops it: reads that have begun are waited for, the others are forgotten. In a process that was forked
/// from the one that began it, it ends with an error.
pub struct Epoch {
    plan: EpochPlan,
    /// Batches handed out.
    batch_count: u64,
    stats: EpochStats,
    wait: Duration,
    /// `None` once it has ended.
    run: Option<Run>,
    failed: bool,
    /// Where the run waits for the next epoch, and what that has to be.
    next: Option<(Arc<NextEpoch>, EpochOptions)>,
}

/// What an epoch reads from, and with.
pub(crate) struct Origin<'a> {
    pub(crate) dataset: &'a Collection,
    pub(crate) sources: &'a Arc<OpenFiles>,
    pub(crate) extents: Arc<Extents>,
    pub(crate) engines: &'a EnginePool,
    pub(crate) patience: Patience,
    /// Extents that are kept from epoch to epoch, if any are.
    pub(crate) cache: Option<Arc<Cache>>,
    /// Where a run of the epoch before waits, if there is one.
    pub(crate) next: &'a Arc<NextEpoch>,
}

/// A run that has gone on to the next epoch, until that is asked for.
#[derive(Default)]
pub(crate) struct NextEpoch(Shared<Option<(EpochOptions, Run)>>);

/// The thread that makes batches, and the queue that they come through.
struct Run {
    handoff: Arc<Handoff<Item>>,
    thread: Option<JoinHandle<()>>,
}

impl Epoch {
    pub(crate) fn new(options: &EpochOptions, origin: Origin<'_>) -> Result<Self, ReadError> {
        let mut planning = Planning::new(origin.dataset, Arc::clone(&origin.extents), options)?;
        let plan = planning.next()?.ok_or(PlanError::NoSamples)?;
        let next = options.followed.then(|| (Arc::clone(origin.next), options.next()));
        let run = match origin.next.take(options) {
            Some(run) => run,
            None => {
                let engine = origin.engines.start()?;
                Run::start(options, origin, engine, planning, plan.clone())?
            }
        };
        let (stats, wait) = (EpochStats::default(), Duration::ZERO);
        Ok(Self { plan, batch_count: 0, stats, wait, run: Some(run), failed: false, next })
    }

    /// Batches of this rank in all, the same for every rank: from the epoch's start, or where it was resumed.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "what is left of it is asked of the iterator")]
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

    /// Where the epoch stands after the batches handed out so far: what [`EpochOptions::resume`] goes on from, here or
    /// in another process, with as many ranks or others.
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

    /// What has been done so far.
    #[must_use]
    pub fn stats(&self) -> EpochStats {
        EpochStats { wait: self.wait, ..self.stats.clone() }
    }

    /// Waits until [`next_batch`](Self::next_batch) would answer at once, but no longer than `timeout`; for who has to
    /// look up now and then.
    pub fn is_ready_within(&mut self, timeout: Duration) -> bool {
        let begin = Instant::now();
        let is_ready = match &self.run {
            Some(run) if run.handoff.is_home() => run.handoff.is_ready_within(timeout),
            _ => true,
        };
        self.wait += begin.elapsed();
        is_ready
    }

    /// The next batch; `None` after the last one, and after an error.
    pub fn next_batch(&mut self) -> Option<Result<Batch, ReadError>> {
        let run = self.run.as_ref().filter(|_| !self.failed)?;
        if !run.handoff.is_home() {
            self.run = None;
            return Some(Err(ReadError::Forked));
        }
        let (item, waited) = run.handoff.take();
        self.wait += waited;
        match item {
            Some(Item::Batch(batch, stats)) => {
                self.batch_count += 1;
                self.stats = *stats;
                Some(Ok(batch))
            }
            Some(Item::End) => {
                self.end();
                None
            }
            Some(Item::Failed(error)) => {
                // The run goes with the epoch: it may have to wait for a device, and the error should not.
                self.failed = true;
                Some(Err(error))
            }
            None => {
                self.run = None;
                Some(Err(EngineError::Stopped { engine: "epoch", in_flight: 0 }.into()))
            }
        }
    }

    /// Leaves the run to the next epoch, if there is to be one.
    fn end(&mut self) {
        let (Some(run), Some((place, options))) = (self.run.take(), self.next.take()) else { return };
        place.put(options, run);
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

impl NextEpoch {
    fn put(&self, options: EpochOptions, run: Run) {
        let replaced = self.0.lock().map(|mut waiting| waiting.replace((options, run)));
        drop(replaced);
    }

    /// The run, if it is for these options; else it is stopped.
    fn take(&self, options: &EpochOptions) -> Option<Run> {
        let (waiting_for, run) = self.0.lock()?.take()?;
        // Whether yet another follows makes no difference to this one.
        let waiting_for = EpochOptions { followed: options.followed, ..waiting_for };
        run.handoff.set_followed(options.followed);
        (waiting_for == *options && run.handoff.is_home()).then_some(run)
    }
}

impl Run {
    fn start(
        options: &EpochOptions,
        origin: Origin<'_>,
        engine: Box<dyn Engine>,
        planning: Planning,
        plan: EpochPlan,
    ) -> Result<Self, ReadError> {
        let Origin { dataset, sources, patience, cache, .. } = origin;
        let handoff = Arc::new(Handoff::new(QUEUE));
        handoff.set_followed(options.followed);
        let pool = Arc::new(BufferPool::new(POOL_LEN));
        let in_place_len_min = in_place_len_min(planning.order(), dataset).max(sources.in_place_len_min());
        let drafts = Drafts::new(dataset.clone(), pool, in_place_len_min);
        let window_len = own_window_len(options.window_len, &plan);
        let bounds = FetchBounds {
            ahead_len_max: prefetch_len(plan.order(), window_len),
            window_len: if plan.order() == Order::Chunked { window_len } else { 0 },
        };
        let before_wait = {
            let handoff = Arc::clone(&handoff);
            Box::new(move || handoff.flush())
        };
        let patience = patience.until(handoff.stop_flag());
        let fetch = Fetch::new(dataset.clone(), Arc::clone(sources), engine, bounds, cache, patience, before_wait);
        let (checkers, progress) = (Checkers::new(), Progress::default());
        let runner = Runner {
            dataset: dataset.clone(),
            planning,
            fetch,
            drafts,
            handoff: Arc::clone(&handoff),
            checkers,
            damage: Damaged::new(options.on_damage),
            progress,
        };
        let thread = Builder::new().name("grain-epoch".into()).spawn(move || runner.run(plan));
        let thread = thread.map_err(|source| EngineError::Start { engine: "epoch", source })?;
        Ok(Self { handoff, thread: Some(thread) })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.handoff.is_home() {
            self.handoff.stop();
            // A panic has been told by the panic hook, and the queue has ended.
            drop(thread.join());
        } else {
            // A forked process has no such thread, and its lock may be held for ever.
            std::mem::forget(thread);
            std::mem::forget(Arc::clone(&self.handoff));
        }
    }
}

/// Raw samples from this many bytes on are units of their own.
fn in_place_len_min(order: Order, dataset: &Collection) -> u64 {
    match order {
        Order::Full => 0,
        Order::Chunked | Order::Sequential => dataset.chunk_size().bytes().saturating_mul(LONE_SAMPLE_CHUNKS),
    }
}

/// The window of all ranks' lanes, or what this rank's lanes are of it.
fn own_window_len(window_len: u64, plan: &EpochPlan) -> u64 {
    match plan.lanes() {
        Some(lanes) => (window_len / lanes).saturating_mul(plan.share().lane_count()).max(1),
        None => window_len,
    }
}

/// Bytes that may be read ahead of what is being visited: an eighth of the window, which is enough for any device
/// where the window is as large as it should be; of a small window up to the whole.
fn prefetch_len(order: Order, window_len: u64) -> u64 {
    const ENOUGH_LEN: u64 = 8 << 20;
    const SINGLE_LEN_MAX: u64 = 64 << 20;
    let len = (window_len / 8).max(window_len.min(ENOUGH_LEN));
    match order {
        Order::Chunked => len,
        // Each extent or sample is visited at once: more read ahead than this only takes memory.
        Order::Full | Order::Sequential => len.min(SINGLE_LEN_MAX),
    }
}
