//! An epoch: every sample once, in the order of its plan, batch by batch.
//!
//! ```text
//! plan -> units -> fetch: engine, units held -> stored bytes -> checked and decoded -> batch
//! ```
//!
//! The plan says which bytes are needed when, so they are read ahead as far as memory allows; the thread that asks
//! for batches submits reads, checks and decodes.

use std::iter::FusedIterator;
use std::num::NonZeroUsize;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Dataset, Location};

mod fetch;
mod spares;
mod stats;
mod units;

pub use self::stats::EpochStats;

use self::fetch::Fetch;
use self::units::Units;
use crate::ReadError;
use crate::batch::{Batch, BatchBuilder};
use crate::engine::Engine;
use crate::plan::{Extents, LaneBudget, Order, OrderChoice, Ordinals, Plan, PlanSpec, StoredSize, default_lanes};
use crate::sources::Sources;

/// What an epoch is to be.
#[derive(Clone, Debug)]
pub struct EpochOptions {
    /// The order of the samples.
    pub order: OrderChoice,
    /// The seed of the shuffle.
    pub seed: u64,
    /// The epoch's number: another one gives another order.
    pub epoch: u64,
    /// Bytes of memory for the extents that samples are drawn from; more mixes better. It decides the default
    /// number of lanes, and so the order.
    pub window_len: u64,
    /// Lanes of the chunked order; `None`: as many as the window holds extents for.
    pub lanes: Option<u64>,
    /// Samples of a batch; the last one may have fewer.
    pub batch_size: NonZeroUsize,
}

impl EpochOptions {
    /// 256 MiB.
    pub const DEFAULT_WINDOW_LEN: u64 = 256 << 20;
    /// 256 samples.
    pub const DEFAULT_BATCH_SIZE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
}

impl Default for EpochOptions {
    /// Epoch 0 of seed 0 in the order that suits the dataset, a window of 256 MiB, batches of 256.
    fn default() -> Self {
        Self {
            order: OrderChoice::Auto,
            seed: 0,
            epoch: 0,
            window_len: Self::DEFAULT_WINDOW_LEN,
            lanes: None,
            batch_size: Self::DEFAULT_BATCH_SIZE,
        }
    }
}

/// One epoch on its way: an iterator of batches. It ends after the last one, or after an error.
///
/// Dropping it stops it: reads that have begun are waited for, the others are forgotten.
pub struct Epoch {
    dataset: Dataset,
    plan: Plan,
    ordinals: Ordinals,
    fetch: Fetch,
    batch_size: NonZeroUsize,
    position: u64,
    failed: bool,
    stats: EpochStats,
}

/// A sample of the next batch.
struct Due {
    ordinal: u64,
    location: Location,
}

impl Epoch {
    pub(crate) fn new(
        options: &EpochOptions,
        dataset: &Dataset,
        sources: Arc<Sources>,
        extents: Arc<Extents>,
        engine: Box<dyn Engine>,
    ) -> Result<Self, ReadError> {
        let plan = plan_of(options, dataset, extents)?;
        let budget = prefetch_len(plan.order(), options.window_len);
        let stats = EpochStats { engine: engine.name(), ..EpochStats::default() };
        let fetch = Fetch::new(dataset.clone(), sources, engine, Units::of(&plan), budget);
        Ok(Self {
            dataset: dataset.clone(),
            ordinals: plan.ordinals_from(0),
            plan,
            fetch,
            batch_size: options.batch_size,
            position: 0,
            failed: false,
            stats,
        })
    }

    /// Batches of the whole epoch.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an epoch has at least one sample")]
    pub fn len(&self) -> u64 {
        self.plan.len().div_ceil(self.batch_size.get() as u64)
    }

    /// The order as a function of the position.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The order, `auto` resolved.
    #[must_use]
    pub fn order(&self) -> Order {
        self.plan.order()
    }

    /// Lanes of the chunked order; `None` in the others.
    #[must_use]
    pub fn lanes(&self) -> Option<u64> {
        self.plan.lanes().map(|lanes| lanes.lane_count())
    }

    /// What has been done so far.
    #[must_use]
    pub fn stats(&self) -> EpochStats {
        let mut stats = self.stats.clone();
        self.fetch.count_into(&mut stats);
        stats
    }

    /// The next batch; `None` after the last one, and after an error.
    pub fn next_batch(&mut self) -> Option<Result<Batch, ReadError>> {
        if self.failed || self.position >= self.plan.len() {
            return None;
        }
        let batch = self.assemble();
        self.failed = batch.is_err();
        Some(batch)
    }

    fn assemble(&mut self) -> Result<Batch, ReadError> {
        let due = self.due()?;
        let first_position = self.position;
        // Its own handle, so that the builder does not borrow the epoch.
        let dataset = self.dataset.clone();
        let mut builder = BatchBuilder::with_room_for(&dataset, due.iter().map(|due| &due.location))?;
        let mut views = Vec::with_capacity(due.len());
        let lane_count = self.lanes().unwrap_or(1);
        for Due { ordinal, location } in &due {
            let stored = self.fetch.stored(self.position % lane_count, *ordinal, location)?;
            views.push(builder.push(*ordinal, location, stored)?);
            self.fetch.leave(self.position % lane_count);
            self.position += 1;
            self.stats.count_sample(location);
        }
        let ordinals = due.into_iter().map(|due| due.ordinal).collect();
        Ok(builder.finish(ordinals, views, Some(first_position)))
    }

    /// The samples of the next batch.
    fn due(&mut self) -> Result<Vec<Due>, ReadError> {
        let count = (self.plan.len() - self.position).min(self.batch_size.get() as u64);
        let ordinals = self.ordinals.by_ref().take(to_usize(count));
        ordinals.map(|ordinal| Ok(Due { ordinal, location: self.dataset.locate(ordinal)? })).collect()
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.plan.len() - self.position).div_ceil(self.batch_size.get() as u64);
        (0, Some(to_usize(left)))
    }
}

impl FusedIterator for Epoch {}

impl std::fmt::Debug for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Epoch").field("plan", &self.plan).field("position", &self.position).finish_non_exhaustive()
    }
}

fn plan_of(options: &EpochOptions, dataset: &Dataset, extents: Arc<Extents>) -> Result<Plan, ReadError> {
    let stored_bytes = dataset.stored_bytes()?;
    let order = options.order.resolve(StoredSize { stored_bytes, sample_count: dataset.sample_count() });
    let budget = LaneBudget {
        window_len: options.window_len,
        chunk_size: dataset.geometry().chunk_size.bytes(),
        stored_bytes,
        extent_count: extents.count(),
    };
    let lanes = options.lanes.unwrap_or_else(|| default_lanes(budget));
    let fingerprint = dataset.fingerprint().0;
    Ok(Plan::new(PlanSpec { extents, seed: options.seed, epoch: options.epoch, fingerprint, order, lanes })?)
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
