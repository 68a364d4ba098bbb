//! A series of epochs: from options to the plan of the first, and of those that follow.

use std::num::NonZeroU32;
use std::sync::Arc;

use grainstore_store::Collection;

use super::epoch_plan::EpochPlan;
use super::options::EpochOptions;
use crate::ReadError;
use crate::plan::{
    DrawKey, Extents, LaneBudget, Order, OrderChoice, Plan, PlanError, PlanSpec, Share, ShareSpec, StoredSize,
    default_lanes,
};
use crate::state::{EpochState, StateError};

/// Plans epochs one after the other, all with the same order.
pub(super) struct EpochSeries {
    dataset: Collection,
    /// Of all samples.
    whole: Arc<Extents>,
    /// Of the samples that all epochs visit, or are drawn from.
    extents: Arc<Extents>,
    /// Of the next epoch to be planned.
    options: EpochOptions,
    order: Order,
    is_followed: bool,
    planned_count: u64,
}

impl EpochSeries {
    pub(super) fn new(dataset: &Collection, whole: Arc<Extents>, options: &EpochOptions) -> Result<Self, ReadError> {
        if let Some(state) = &options.resume {
            // First, since order, lanes and group are taken from the state.
            check_dataset(dataset, state)?;
            state.check_samples(hash_of(options), options.weights.as_ref().map(|weights| weights.hash()))?;
        }
        let extents = match &options.subset {
            Some(subset) => Arc::new(whole.within(subset)?),
            None => Arc::clone(&whole),
        };
        let of = |options| OrderQuestion { dataset, whole: &whole, extents: &extents, options }.order();
        let order = of(options)?;
        // A resumed epoch may have another order than those after it.
        let is_followed = options.followed && (options.resume.is_none() || of(&options.next())? == order);
        Ok(Self {
            dataset: dataset.clone(),
            extents,
            whole,
            options: options.clone(),
            order,
            is_followed,
            planned_count: 0,
        })
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// Whether another epoch follows each of them.
    pub(super) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// The plan of the first epoch, then of the next; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<EpochPlan>, ReadError> {
        if self.planned_count > 0 && !self.is_followed {
            return Ok(None);
        }
        let options = &self.options;
        let extents = self.extents_of_epoch()?;
        let question = OrderQuestion { dataset: &self.dataset, whole: &self.whole, extents: &extents, options };
        let group = question.group();
        let lanes = if self.order == Order::Chunked { question.lanes()? } else { 1 };
        let fingerprint = self.dataset.fingerprint();
        let plan = Plan::new(PlanSpec {
            extents,
            seed: options.seed,
            epoch: options.epoch,
            fingerprint: fingerprint.0,
            order: self.order,
            lanes,
            group,
        })?;
        let state = EpochState {
            fingerprint,
            subset: hash_of(options),
            weights: options.weights.as_ref().map(|weights| weights.hash()),
            seed: options.seed,
            epoch: options.epoch,
            order: self.order,
            lanes: plan.lanes().map(|lanes| lanes.lane_count()),
            group: plan.lanes().map(|lanes| lanes.group()),
            position: 0,
        };
        if let Some(resumed) = &options.resume {
            resumed.check(&state)?;
        }
        let start = options.resume.as_ref().map_or(0, EpochState::position);
        let EpochOptions { rank, world, batch_size, tail, .. } = *options;
        let share = Share::new(&plan, ShareSpec { rank, world, batch_size, start, tail })?;
        self.planned_count += 1;
        self.options = self.options.next();
        Ok(Some(EpochPlan::new(plan, share, state)))
    }

    /// Of the samples that the next epoch visits.
    fn extents_of_epoch(&self) -> Result<Arc<Extents>, PlanError> {
        let EpochOptions { seed, epoch, subset, weights, .. } = &self.options;
        let Some(weights) = weights else { return Ok(Arc::clone(&self.extents)) };
        let of = DrawKey { seed: *seed, epoch: *epoch, fingerprint: self.dataset.fingerprint().0 };
        let drawn = weights.draw(of, self.whole.sample_count(), subset.as_deref())?;
        Ok(Arc::new(self.whole.within(&drawn)?))
    }
}

/// The hash of the subset, if there is one.
fn hash_of(options: &EpochOptions) -> Option<u64> {
    options.subset.as_ref().map(|subset| subset.hash())
}

/// Whether the state is of the open dataset. order.md: STA-2.
fn check_dataset(dataset: &Collection, state: &EpochState) -> Result<(), ReadError> {
    let found = state.fingerprint();
    let expected = dataset.fingerprint();
    if found == expected {
        return Ok(());
    }
    let generations = if dataset.member_count() == 1 {
        let member = dataset.member(0)?;
        member.generation_of(found).zip(member.generation_of(expected))
    } else {
        None
    };
    Err(match generations {
        Some((found, opened)) => StateError::OfGeneration { found, opened },
        None => StateError::OfOtherDataset { found, expected },
    }
    .into())
}

/// What decides the order, the number of lanes and the group. A state contains them, so that none is computed again.
struct OrderQuestion<'a> {
    dataset: &'a Collection,
    whole: &'a Extents,
    extents: &'a Extents,
    options: &'a EpochOptions,
}

impl OrderQuestion<'_> {
    fn order(&self) -> Result<Order, ReadError> {
        Ok(match (self.options.order, &self.options.resume) {
            (OrderChoice::Fixed(order), _) => order,
            (OrderChoice::Auto, Some(state)) => state.order(),
            (OrderChoice::Auto, None) => self.options.order.resolve(StoredSize {
                stored_bytes: self.dataset.stored_bytes()?,
                sample_count: self.dataset.sample_count(),
            }),
        })
    }

    fn group(&self) -> NonZeroU32 {
        let resumed = self.options.resume.as_ref().and_then(EpochState::group);
        self.options.group.or(resumed).unwrap_or(NonZeroU32::MIN)
    }

    /// Lanes of the chunked order.
    fn lanes(&self) -> Result<u64, ReadError> {
        let resumed = self.options.resume.as_ref().and_then(EpochState::lanes);
        match self.options.lanes.or(resumed) {
            Some(lanes) => Ok(lanes),
            None => self.default_lanes(),
        }
    }

    fn default_lanes(&self) -> Result<u64, ReadError> {
        let window_len = self.options.window_len;
        let chunk_size = self.dataset.chunk_size().bytes();
        if window_len < chunk_size {
            return Err(ReadError::SmallWindow { window_len, chunk_size });
        }
        Ok(default_lanes(LaneBudget {
            window_len,
            chunk_size,
            stored_bytes: self.dataset.stored_bytes()?,
            extent_count: self.whole.count(),
            unit_count: self.extents.unit_count(self.group()),
        }))
    }
}
