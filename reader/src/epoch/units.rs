//! Units: what an epoch fetches as one, in the order of first need.
//!
//! A unit is a piece of the chunked order, a sample of the full order, or an extent of the sequential one. It belongs
//! to a lane (the other orders have one), which visits its units one after the other.

use std::ops::Range;
use std::sync::Arc;

use crate::plan::{Extents, Order, Ordinals, Piece, Plan, Schedule};

/// What is fetched as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitSpec {
    /// The lane that visits it.
    pub(super) lane: u64,
    /// The position in the epoch of the first sample that is visited.
    pub(super) position: u64,
    /// Its samples: one or two ranges that do not touch, none empty, all of one segment.
    pub(super) ordinals: Vec<Range<u64>>,
}

impl UnitSpec {
    /// A unit of one range in the only lane.
    fn sole(position: u64, ordinals: Range<u64>) -> Self {
        Self { lane: 0, position, ordinals: vec![ordinals] }
    }

    /// Samples of the unit.
    pub(super) fn len(&self) -> u64 {
        self.ordinals.iter().map(|range| range.end - range.start).sum()
    }
}

/// The units of an epoch, one after the other.
pub(super) enum Units {
    Chunked { schedule: Schedule, lane_count: u64 },
    Full { ordinals: Ordinals, position: u64 },
    Sequential { extents: Arc<Extents>, next: u32 },
}

impl Units {
    pub(super) fn of(plan: &Plan) -> Self {
        match (plan.lanes(), plan.order()) {
            (Some(lanes), _) => Self::Chunked { schedule: lanes.schedule(), lane_count: lanes.lane_count() },
            (None, Order::Sequential) => Self::Sequential { extents: Arc::clone(plan.extents()), next: 0 },
            (None, _) => Self::Full { ordinals: plan.ordinals_from(0), position: 0 },
        }
    }
}

impl Iterator for Units {
    type Item = UnitSpec;

    fn next(&mut self) -> Option<UnitSpec> {
        match self {
            Self::Chunked { schedule, lane_count } => schedule.next().map(|piece| UnitSpec {
                lane: piece.lane,
                position: piece.first_round * *lane_count + piece.lane,
                ordinals: ranges_of(&piece),
            }),
            Self::Full { ordinals, position } => {
                let ordinal = ordinals.next()?;
                *position += 1;
                Some(UnitSpec::sole(*position - 1, ordinal..ordinal + 1))
            }
            Self::Sequential { extents, next } => {
                let extent = *next;
                (extent < extents.count()).then(|| {
                    *next += 1;
                    let samples = extents.samples(extent);
                    UnitSpec::sole(samples.start, samples)
                })
            }
        }
    }
}

/// The ranges of a piece. A whole extent that is rotated has two that touch: it is one.
fn ranges_of(piece: &Piece) -> Vec<Range<u64>> {
    let ranges: Vec<_> = piece.ranges().collect();
    match ranges.as_slice() {
        [head, wrapped] if wrapped.end == head.start => std::iter::once(wrapped.start..head.end).collect(),
        _ => ranges,
    }
}
