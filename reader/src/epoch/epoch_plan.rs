//! The plan of an epoch: its order, this rank's share of it, its states. No data is read for it.

use std::num::NonZeroU32;
use std::sync::Arc;

use grainstore_store::Collection;

use super::options::EpochOptions;
use super::series::EpochSeries;
use crate::ReadError;
use crate::plan::{Extents, Order, Plan, PlanError, PlannedBatches, Share};
use crate::state::EpochState;

/// The order of an epoch and this rank's share of it. It determines everything that the epoch reads; making it reads no
/// sample.
#[derive(Clone, Debug)]
pub struct EpochPlan {
    plan: Plan,
    share: Share,
    /// At the epoch's start.
    state: EpochState,
}

impl EpochPlan {
    pub(super) fn new(plan: Plan, share: Share, state: EpochState) -> Self {
        Self { plan, share, state }
    }

    pub(crate) fn of(dataset: &Collection, extents: Arc<Extents>, options: &EpochOptions) -> Result<Self, ReadError> {
        Ok(EpochSeries::new(dataset, extents, options)?.next()?.ok_or(PlanError::NoSamples)?)
    }

    /// The order as a function of the position.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Which positions are this rank's.
    #[must_use]
    pub fn share(&self) -> &Share {
        &self.share
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

    /// Extents that the chunked order shuffles as one; `None` in the others.
    #[must_use]
    pub fn group(&self) -> Option<NonZeroU32> {
        self.plan.lanes().map(|lanes| lanes.group())
    }

    /// The batches of this rank from number `batch` on: their samples, in order.
    #[must_use]
    pub fn steps(&self, batch: u64) -> PlannedBatches {
        self.share.steps(&self.plan, batch)
    }

    /// The state after `batch_count` batches, the same for every rank: an epoch that resumes from it continues there.
    #[must_use]
    pub fn state_after(&self, batch_count: u64) -> EpochState {
        self.state.at(self.share.position_after(batch_count))
    }

    /// A warning for the user where the ranks cannot have lanes of their own.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let factor = self.share.ranks_per_piece_max();
        let lanes = self.lanes()?;
        let world = self.share.spec().world;
        // An epoch that has begun keeps its lanes.
        let remedy = if self.share.spec().start == 0 {
            format!("; a number of lanes that {world} divides avoids it")
        } else {
            String::new()
        };
        (factor > 1).then(|| {
            format!(
                "{lanes} {} cannot be divided among {world} ranks: up to {factor} of them read from the same chunks (more \
                 bytes in all: up to {factor} times where samples are small){remedy}",
                if lanes == 1 { "lane" } else { "lanes" }
            )
        })
    }
}
