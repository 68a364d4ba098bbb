//! The next units to be submitted: which bytes they need, and whether they go straight into a batch.
//!
//! Units that follow each other in one lane and on the device are joined to one read: extents in the order of their
//! place are read a megabyte at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::Collection;

use super::cache::{Cache, Supply};
use super::drafts::Drafts;
use super::epoch_plan::EpochPlan;
use super::units::{Samples, UnitSpec, Units};
use super::wanted::runs_of;
use crate::ReadError;
use crate::run::Run;

/// Units are joined up to this length: longer reads are no faster, and shorter ones run beside each other.
const JOINED_LEN_MAX: u64 = 1 << 20;
/// Samples of a joined unit: those of no length take no room.
const JOINED_MAX: u32 = 1 << 20;

/// A unit, and the bytes that it needs.
pub(super) struct Planned {
    pub(super) lane: u64,
    pub(super) sample_count: u32,
    /// The batch, and the place in it, whose slot the only sample is read into.
    pub(super) in_place: Option<(u64, usize)>,
    pub(super) runs: Result<Vec<Run>, ReadError>,
    pub(super) supply: Supply,
}

/// Looks up units, epoch by epoch.
pub(super) struct Planner {
    dataset: Collection,
    /// And this epoch's number in it.
    cache: Option<(Arc<Cache>, u64)>,
    orders: VecDeque<Order>,
    /// Looked at and not submitted.
    next: VecDeque<Planned>,
}

/// The units of an epoch, and the number of its first batch.
struct Order {
    epoch: EpochPlan,
    units: Units,
    first_batch: u64,
}

impl Planner {
    pub(super) fn new(dataset: Collection, cache: Option<Arc<Cache>>) -> Self {
        let cache = cache.map(|cache| (Arc::clone(&cache), cache.new_number()));
        Self { dataset, cache, orders: VecDeque::new(), next: VecDeque::new() }
    }

    /// Goes on with another epoch after those it knows.
    pub(super) fn append(&mut self, epoch: &EpochPlan, first_batch: u64) {
        self.orders.push_back(Order { epoch: epoch.clone(), units: Units::of(epoch), first_batch });
    }

    pub(super) fn has_next(&mut self, drafts: &Drafts) -> bool {
        let next = self.next(drafts);
        let found = next.is_some();
        next.into_iter().for_each(|planned| self.put_back(planned));
        found
    }

    /// The next unit to be submitted; the caller submits it or puts it back.
    pub(super) fn next(&mut self, drafts: &Drafts) -> Option<Planned> {
        let mut planned = self.next.pop_front().or_else(|| self.look_up(drafts))?;
        while planned.sole_run().is_some() {
            let Some(later) = self.next.pop_front().or_else(|| self.look_up(drafts)) else { break };
            match planned.joined(&later) {
                Some(joined) => planned = joined,
                None => {
                    self.next.push_front(later);
                    break;
                }
            }
        }
        Some(planned)
    }

    /// Takes back what `next` gave last.
    pub(super) fn put_back(&mut self, planned: Planned) {
        self.next.push_front(planned);
    }

    fn look_up(&mut self, drafts: &Drafts) -> Option<Planned> {
        loop {
            let order = self.orders.front_mut()?;
            match order.units.next() {
                Some(spec) => {
                    let cache = self.cache.as_ref();
                    return Some(Planned::new(&self.dataset, cache, &spec, order, drafts));
                }
                None => drop(self.orders.pop_front()),
            }
        }
    }
}

impl Planned {
    fn new(
        dataset: &Collection,
        cache: Option<&(Arc<Cache>, u64)>,
        spec: &UnitSpec,
        order: &Order,
        drafts: &Drafts,
    ) -> Self {
        let extents = order.epoch.plan().extents();
        let mut runs = runs_of(dataset, extents, &spec.samples);
        let mut supply = Supply::Read;
        // An extent has 65,536 samples at most.
        let sample_count = u32::try_from(spec.samples.count()).unwrap_or(u32::MAX);
        let ordinal = match &spec.samples {
            Samples::One(ordinal) => Some(*ordinal),
            Samples::Ranges(ranges) => ranges.first().map(|range| extents.ordinal(range.start)),
            Samples::Some(indices) => indices.first().map(|index| extents.ordinal(*index)),
        };
        if let (Some((cache, owner)), Ok(own), Some(ordinal)) = (cache, &runs, ordinal) {
            match cache.supply(dataset, extents.subset().map(Arc::as_ref), ordinal, (*owner, own)) {
                Ok(found) => supply = found,
                Err(error) => runs = Err(error),
            }
        }
        let is_read = matches!(supply, Supply::Read);
        let alone = || dataset.locate(ordinal?).ok();
        let in_place = is_read && sample_count == 1 && alone().is_some_and(|location| drafts.is_in_place(&location));
        let in_place = in_place.then(|| {
            let (batch, index) = order.epoch.share().place_of(spec.position);
            (order.first_batch + batch, to_usize(index))
        });
        Self { lane: spec.lane, sample_count, in_place, runs, supply }
    }

    pub(super) fn memory_len_max(&self) -> u64 {
        let runs = match (&self.supply, &self.runs) {
            (Supply::Keep(_, runs), _) | (Supply::Read, Ok(runs)) => runs.as_slice(),
            (Supply::Kept(_) | Supply::OnTheWay(_), _) | (_, Err(_)) => &[],
        };
        runs.iter().map(Run::blocks_len).fold(0, u64::saturating_add)
    }

    /// Both units as one read, where they follow each other in a lane and on the device.
    fn joined(&self, later: &Self) -> Option<Self> {
        let (run, next) = (self.sole_run()?, later.sole_run()?);
        let joined = run.joined(&next).filter(|joined| self.lane == later.lane && joined.len <= JOINED_LEN_MAX)?;
        let sample_count = self.sample_count.checked_add(later.sample_count).filter(|count| *count <= JOINED_MAX)?;
        Some(Self { lane: self.lane, sample_count, in_place: None, runs: Ok(vec![joined]), supply: Supply::Read })
    }

    /// The only run, where it is short enough to be joined with another.
    fn sole_run(&self) -> Option<Run> {
        match (self.runs.as_deref(), &self.supply) {
            (Ok([run]), Supply::Read) if self.in_place.is_none() && run.len < JOINED_LEN_MAX => Some(*run),
            _ => None,
        }
    }
}
