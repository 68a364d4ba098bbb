//! What an epoch is going to be, without reading any data: its order, this rank's share of it, its states.

use std::sync::Arc;

use grainstore_store::Collection;

use super::options::EpochOptions;
use super::planning::Planning;
use crate::ReadError;
use crate::plan::{Extents, Order, Plan, PlanError, Share, Steps};
use crate::state::EpochState;

/// The order of an epoch and this rank's share of it. All that will be read follows from it, and nothing is read for it.
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
        Ok(Planning::new(dataset, extents, options)?.next()?.ok_or(PlanError::NoSamples)?)
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

    /// The batches of this rank from number `batch` on: what they hold, and in which order.
    #[must_use]
    pub fn steps(&self, batch: u64) -> Steps {
        self.share.steps(&self.plan, batch)
    }

    /// The state after so many batches, the same for every rank: what resumes there.
    #[must_use]
    pub fn state_after(&self, batch_count: u64) -> EpochState {
        self.state.at(self.share.position_after(batch_count))
    }

    /// What a user should be told once where the ranks cannot have lanes of their own.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let (factor, lanes) = (self.share.readers_of_an_extent(), self.lanes()?);
        let world = self.share.spec().world;
        // An epoch that has begun keeps its lanes.
        let remedy = match self.share.spec().start {
            0 => format!("; a number of lanes that {world} divides avoids it"),
            _ => String::new(),
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
