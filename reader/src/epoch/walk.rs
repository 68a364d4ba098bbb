//! The walk of an epoch: the samples that a rank visits, as units in the order of first need.
//!
//! A unit is a piece of the chunked order, a sample of the full order, or an extent of the sequential one, or what the
//! rank visits of it. It belongs to a lane (the other orders have one lane), which visits its units one after the
//! other. Padding comes last, each sample by itself and in a lane of its own: other lanes, or ranks, have read what it
//! repeats long before.

use std::iter::Flatten;
use std::ops::Range;
use std::sync::Arc;

use super::epoch_plan::EpochPlan;
use crate::plan::{Extents, Order, Ordinals, PieceSchedule, Plan, Positions, Share, Stride, Visits};

/// The samples of a unit and where the epoch visits them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitVisit {
    /// The lane that visits it.
    pub(super) lane: u64,
    /// The position in the epoch of the first visit.
    pub(super) position: u64,
    pub(super) samples: VisitedSamples,
}

/// The samples of a unit, all of one extent: one at least, and none twice unless the epoch has repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VisitedSamples {
    /// What a lane visits of an extent, shuffled.
    Piece(Box<Visits>),
    /// Consecutive indices (of the epoch's extents), visited in this order.
    Consecutive(Range<u64>),
    /// An ordinal, where the epoch has no repeats.
    One(u64),
}

impl VisitedSamples {
    /// Number of samples.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Piece(visits) => visits.count,
            Self::Consecutive(indices) => indices.end - indices.start,
            Self::One(_) => 1,
        }
    }

    /// An ordinal of their extent.
    pub(super) fn extent_ordinal(&self, extents: &Extents) -> u64 {
        match self {
            Self::Piece(visits) => extents.ordinal(extents.samples(visits.piece.extent).start),
            Self::Consecutive(indices) => extents.ordinal(indices.start),
            Self::One(ordinal) => *ordinal,
        }
    }

    /// The ordinal of the sample, if it is only one.
    pub(super) fn sole_ordinal(&self, extents: &Extents) -> Option<u64> {
        match self {
            Self::Piece(visits) if visits.count == 1 => visits.indices().first().map(|&index| extents.ordinal(index)),
            Self::Consecutive(indices) if indices.end - indices.start == 1 => Some(extents.ordinal(indices.start)),
            Self::One(ordinal) => Some(*ordinal),
            Self::Piece(_) | Self::Consecutive(_) => None,
        }
    }

    /// Replaces `offsets` by the samples in the order of their visit, as distances from the ordinal that is returned.
    pub(super) fn offsets_into(&self, extents: &Extents, offsets: &mut Vec<u16>) -> u64 {
        match self {
            Self::Piece(visits) => visits.offsets_into(extents, offsets),
            Self::Consecutive(indices) => extents.offsets_into(indices.clone(), offsets),
            Self::One(ordinal) => {
                offsets.clear();
                offsets.push(0);
                *ordinal
            }
        }
    }

    /// Appends the repeats of the samples in the order of their visit.
    pub(super) fn repeats_into(&self, extents: &Extents, repeats: &mut Vec<u32>) {
        // Memory for 2^32 visits of a sample does not exist.
        let repeat = |index| u32::try_from(extents.repeat(index)).unwrap_or(u32::MAX);
        match self {
            Self::Piece(visits) => repeats.extend(visits.indices().into_iter().map(repeat)),
            Self::Consecutive(indices) => repeats.extend(indices.clone().map(repeat)),
            Self::One(_) => repeats.push(0),
        }
    }
}

/// The units of a rank's share of an epoch, one after the other.
pub(super) struct EpochWalk {
    /// What comes before any padding.
    inside: OrderWalk,
    plan: Plan,
    padding: Box<dyn Iterator<Item = u64> + Send>,
}

enum OrderWalk {
    Chunked {
        schedule: PieceSchedule,
        lane_count: u64,
    },
    Full {
        ordinals: Ordinals,
        position: u64,
        step: u64,
    },
    /// The full order of an epoch with repeats, which are known by index.
    FullWithRepeats {
        plan: Plan,
        positions: Stride,
    },
    Sequential(Flatten<SequentialRanges>),
}

impl EpochWalk {
    pub(super) fn of(epoch: &EpochPlan) -> Self {
        let plan = epoch.plan();
        let share = epoch.share();
        let inside = match (plan.lanes(), plan.order()) {
            (Some(lanes), _) => {
                OrderWalk::Chunked { schedule: lanes.schedule_of(share.stride()), lane_count: lanes.lane_count() }
            }
            (None, Order::Sequential) => {
                OrderWalk::Sequential(SequentialRanges::new(Arc::clone(plan.extents()), share.clone()).flatten())
            }
            (None, _) if plan.extents().has_repeats() => {
                OrderWalk::FullWithRepeats { plan: plan.clone(), positions: share.stride() }
            }
            (None, _) => {
                let stride = share.stride();
                OrderWalk::Full { ordinals: plan.ordinals_of(stride), position: stride.first, step: stride.step }
            }
        };
        Self { inside, plan: plan.clone(), padding: Box::new(share.padding()) }
    }
}

impl Iterator for EpochWalk {
    type Item = UnitVisit;

    fn next(&mut self) -> Option<UnitVisit> {
        self.inside.next().or_else(|| {
            let position = self.padding.next()?;
            let index = self.plan.index_at(position % self.plan.len());
            Some(UnitVisit {
                lane: lane_count(&self.plan),
                position,
                samples: VisitedSamples::Consecutive(index..index + 1),
            })
        })
    }
}

impl Iterator for OrderWalk {
    type Item = UnitVisit;

    fn next(&mut self) -> Option<UnitVisit> {
        match self {
            Self::Chunked { schedule, lane_count } => schedule.next().map(|visits| {
                let piece = &visits.piece;
                let lane = piece.lane;
                let position = (piece.first_round + visits.skipped) * *lane_count + lane;
                UnitVisit { lane, position, samples: VisitedSamples::Piece(Box::new(visits)) }
            }),
            Self::Full { ordinals, position, step } => {
                let visit = UnitVisit { lane: 0, position: *position, samples: VisitedSamples::One(ordinals.next()?) };
                // Past the last position nothing is visited, so it need not be exact there.
                *position = position.saturating_add(*step);
                Some(visit)
            }
            Self::FullWithRepeats { plan, positions } => {
                let position = positions.next()?;
                let index = plan.index_at(position);
                Some(UnitVisit { lane: 0, position, samples: VisitedSamples::Consecutive(index..index + 1) })
            }
            Self::Sequential(ranges) => ranges.next(),
        }
    }
}

/// The positions of a share of the sequential order, batch by batch, each cut where extents end.
struct SequentialRanges {
    extents: Arc<Extents>,
    share: Share,
    next_batch: u64,
    /// The extent that the last range ended in.
    extent: u32,
}

impl SequentialRanges {
    fn new(extents: Arc<Extents>, share: Share) -> Self {
        Self { extents, share, next_batch: 0, extent: 0 }
    }

    /// Consecutive positions that are this rank's: one batch, or all of them where there is no other rank.
    fn next_range(&mut self) -> Option<Range<u64>> {
        let batch = self.next_batch;
        let last = self.share.batch_count().checked_sub(1)?;
        if batch > last {
            return None;
        }
        let end_batch = if self.share.spec().world == 1 { last } else { batch };
        self.next_batch = end_batch + 1;
        let first = self.share.positions(batch);
        let last = self.share.positions(end_batch);
        let end = (last.first + last.count).min(self.extents.sample_count());
        Some(first.first..end.max(first.first))
    }
}

impl Iterator for SequentialRanges {
    type Item = RangeByExtent;

    fn next(&mut self) -> Option<RangeByExtent> {
        let range = self.next_range()?;
        if !range.is_empty() {
            self.extent = self.extents.extent_of(range.start, self.extent);
        }
        Some(RangeByExtent { extents: Arc::clone(&self.extents), extent: self.extent, range })
    }
}

/// A range of positions, cut where extents end.
struct RangeByExtent {
    extents: Arc<Extents>,
    extent: u32,
    range: Range<u64>,
}

impl Iterator for RangeByExtent {
    type Item = UnitVisit;

    fn next(&mut self) -> Option<UnitVisit> {
        let start = self.range.start;
        if start >= self.range.end {
            return None;
        }
        let end = self.extents.samples(self.extent).end.min(self.range.end);
        self.range.start = end;
        self.extent += u32::from(end < self.range.end);
        Some(UnitVisit { lane: 0, position: start, samples: VisitedSamples::Consecutive(start..end) })
    }
}

/// The lanes that visit the samples of a batch one after the other: round and round, and in the end the padding's.
pub(super) struct LaneTurns {
    lane: u64,
    step: u64,
    lane_count: u64,
    /// Samples that are not padding.
    inside_count: u64,
}

impl LaneTurns {
    pub(super) fn of(plan: &Plan, positions: &Positions) -> Self {
        let lane_count = lane_count(plan);
        let inside_count = plan.len().saturating_sub(positions.first).div_ceil(positions.step).min(positions.count);
        Self { lane: positions.first % lane_count, step: positions.step % lane_count, lane_count, inside_count }
    }
}

impl Iterator for LaneTurns {
    type Item = u64;

    /// The lane of the next sample.
    fn next(&mut self) -> Option<u64> {
        if self.inside_count == 0 {
            return Some(self.lane_count);
        }
        self.inside_count -= 1;
        let lane = self.lane;
        let next = lane + self.step;
        self.lane = if next < self.lane_count { next } else { next - self.lane_count };
        Some(lane)
    }
}

/// Lanes of the plan. The one after them visits the padding.
fn lane_count(plan: &Plan) -> u64 {
    plan.lanes().map_or(1, |lanes| lanes.lane_count())
}
