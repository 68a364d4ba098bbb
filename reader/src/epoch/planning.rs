//! From options to plans: the order of an epoch, and of those that follow it.

use std::sync::Arc;

use grainstore_store::Dataset;

use super::options::EpochOptions;
use crate::ReadError;
use crate::plan::{Extents, LaneBudget, Order, Plan, PlanSpec, StoredSize, default_lanes};

/// Plans epochs one after the other.
pub(super) struct Planning {
    dataset: Dataset,
    extents: Arc<Extents>,
    /// Of the next epoch to be planned.
    options: EpochOptions,
    order: Order,
    lanes: u64,
    planned_count: u64,
}

impl Planning {
    pub(super) fn new(dataset: &Dataset, extents: Arc<Extents>, options: &EpochOptions) -> Result<Self, ReadError> {
        let stored_bytes = dataset.stored_bytes()?;
        let order = options.order.resolve(StoredSize { stored_bytes, sample_count: dataset.sample_count() });
        let extent_count = extents.count();
        let chunk_size = dataset.geometry().chunk_size.bytes();
        // Samples that are extents of their own are outside the window, so that a mean above the chunk says nothing.
        let extent_len = chunk_size.min(stored_bytes / u64::from(extent_count.max(1)));
        if order == Order::Chunked && options.window_len < extent_len {
            let what = format!(
                "window is {} bytes, expected {extent_len} or more: the length of an extent",
                options.window_len
            );
            return Err(ReadError::Option { what });
        }
        let budget = LaneBudget { window_len: options.window_len, chunk_size, stored_bytes, extent_count };
        let lanes = options.lanes.unwrap_or_else(|| default_lanes(budget));
        Ok(Self { dataset: dataset.clone(), extents, options: options.clone(), order, lanes, planned_count: 0 })
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// The plan of the first epoch, then of the next; `None` where there is to be no other.
    pub(super) fn next(&mut self) -> Result<Option<Plan>, ReadError> {
        if self.planned_count > 0 && !self.options.followed {
            return Ok(None);
        }
        let plan = Plan::new(PlanSpec {
            extents: Arc::clone(&self.extents),
            seed: self.options.seed,
            epoch: self.options.epoch,
            fingerprint: self.dataset.fingerprint().0,
            order: self.order,
            lanes: self.lanes,
        })?;
        self.planned_count += 1;
        self.options = self.options.next();
        Ok(Some(plan))
    }
}
