//! Units: what an epoch fetches as one, in the order of first need.
//!
//! A unit is a piece of the chunked order, a sample of the full order, or an extent of the sequential one, or what the
//! rank visits of it. It belongs to a lane (the other orders have one), which visits its units one after the other.
//! Padding comes last, each sample by itself: what it repeats was read by other lanes, or ranks, long before.

use std::iter::Flatten;
use std::ops::Range;
use std::sync::Arc;

use super::epoch_plan::EpochPlan;
use crate::plan::{Extents, Order, Ordinals, Plan, Schedule, Share, Visits};

/// What is fetched as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitSpec {
    /// The lane that visits it.
    pub(super) lane: u64,
    /// The position in the epoch of the first sample that is visited.
    pub(super) position: u64,
    /// Its samples, all of one segment.
    pub(super) samples: Samples,
}

/// The samples of a unit: none twice, and not none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Samples {
    /// Indices (of the epoch's extents): ranges that do not touch.
    Ranges(Vec<Range<u64>>),
    /// Some indices of an extent, ascending.
    Some(Vec<u64>),
    /// An ordinal.
    One(u64),
}

impl Samples {
    /// Number of samples.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Ranges(ranges) => ranges.iter().map(|range| range.end - range.start).sum(),
            Self::Some(indices) => indices.len() as u64,
            Self::One(_) => 1,
        }
    }
}

/// The units of a rank's share of an epoch, one after the other.
pub(super) struct Units {
    inside: Inside,
    plan: Plan,
    padding: Box<dyn Iterator<Item = u64> + Send>,
    padding_lane: u64,
}

/// The units before any padding.
enum Inside {
    Chunked { schedule: Schedule, lane_count: u64 },
    Full { ordinals: Ordinals, position: u64, step: u64 },
    Sequential(Flatten<Parts>),
}

impl Units {
    pub(super) fn of(epoch: &EpochPlan) -> Self {
        let (plan, share) = (epoch.plan(), epoch.share());
        let inside = match (plan.lanes(), plan.order()) {
            (Some(lanes), _) => {
                Inside::Chunked { schedule: lanes.schedule_of(share.stride()), lane_count: lanes.lane_count() }
            }
            (None, Order::Sequential) => {
                Inside::Sequential(Parts::new(Arc::clone(plan.extents()), share.clone()).flatten())
            }
            (None, _) => {
                let stride = share.stride();
                Inside::Full { ordinals: plan.ordinals_of(stride), position: stride.first, step: stride.step }
            }
        };
        Self { inside, plan: plan.clone(), padding: Box::new(share.padding()), padding_lane: padding_lane(plan) }
    }
}

/// The lane that visits the padding.
pub(super) fn padding_lane(plan: &Plan) -> u64 {
    plan.lanes().map_or(0, |lanes| lanes.lane_count())
}

impl Iterator for Units {
    type Item = UnitSpec;

    fn next(&mut self) -> Option<UnitSpec> {
        self.inside.next().or_else(|| {
            let position = self.padding.next()?;
            let ordinal = self.plan.at(position % self.plan.len());
            Some(UnitSpec { lane: self.padding_lane, position, samples: Samples::One(ordinal) })
        })
    }
}

impl Iterator for Inside {
    type Item = UnitSpec;

    fn next(&mut self) -> Option<UnitSpec> {
        match self {
            Self::Chunked { schedule, lane_count } => schedule.next().map(|visits| {
                let piece = &visits.piece;
                let position = (piece.first_round + visits.skipped) * *lane_count + piece.lane;
                UnitSpec { lane: piece.lane, position, samples: samples_of(&visits) }
            }),
            Self::Full { ordinals, position, step } => {
                let spec = UnitSpec { lane: 0, position: *position, samples: Samples::One(ordinals.next()?) };
                *position = position.saturating_add(*step);
                Some(spec)
            }
            Self::Sequential(parts) => parts.next(),
        }
    }
}

fn samples_of(visits: &Visits) -> Samples {
    if !visits.is_whole() {
        let mut indices = visits.indices();
        indices.sort_unstable();
        return Samples::Some(indices);
    }
    let ranges: Vec<_> = visits.piece.ranges().collect();
    Samples::Ranges(match ranges.as_slice() {
        // A whole extent that is rotated has two ranges that touch: it is one.
        [head, wrapped] if wrapped.end == head.start => std::iter::once(wrapped.start..head.end).collect(),
        _ => ranges,
    })
}

/// The positions of a share of the sequential order, batch by batch, each cut where extents end.
struct Parts {
    extents: Arc<Extents>,
    share: Share,
    next_batch: u64,
    /// The extent that the last range ended in.
    extent: u32,
}

impl Parts {
    fn new(extents: Arc<Extents>, share: Share) -> Self {
        Self { extents, share, next_batch: 0, extent: 0 }
    }

    /// Consecutive positions that are this rank's: one batch, or all of them where there is no other rank.
    fn next_range(&mut self) -> Option<Range<u64>> {
        let (batch, last) = (self.next_batch, self.share.batch_count().checked_sub(1)?);
        if batch > last {
            return None;
        }
        let end_batch = if self.share.spec().world == 1 { last } else { batch };
        self.next_batch = end_batch + 1;
        let (first, last) = (self.share.positions(batch), self.share.positions(end_batch));
        let end = (last.first + last.count).min(self.extents.sample_count());
        Some(first.first..end.max(first.first))
    }
}

impl Iterator for Parts {
    type Item = Cut;

    fn next(&mut self) -> Option<Cut> {
        let range = self.next_range()?;
        if !range.is_empty() {
            self.extent = self.extents.extent_of(range.start, self.extent);
        }
        Some(Cut { extents: Arc::clone(&self.extents), extent: self.extent, range })
    }
}

/// A range of positions, cut where extents end.
struct Cut {
    extents: Arc<Extents>,
    extent: u32,
    range: Range<u64>,
}

impl Iterator for Cut {
    type Item = UnitSpec;

    fn next(&mut self) -> Option<UnitSpec> {
        let start = self.range.start;
        if start >= self.range.end {
            return None;
        }
        let end = self.extents.samples(self.extent).end.min(self.range.end);
        self.range.start = end;
        self.extent += u32::from(end < self.range.end);
        Some(UnitSpec { lane: 0, position: start, samples: Samples::Ranges(std::iter::once(start..end).collect()) })
    }
}
