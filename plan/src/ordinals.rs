//! The ordinals of an epoch one after the other, each piece shuffled once.

use std::iter::FusedIterator;

use super::extents::Extents;
use super::lanes::Lanes;
use super::stride::Stride;
use super::walk::LaneWalk;
use super::{Arrangement, Plan, in_memory};

/// The ordinals of a plan from a position on, all of them or every n-th: see [`Plan::ordinals_from`].
#[derive(Clone, Debug)]
pub struct Ordinals {
    plan: Plan,
    /// The remaining positions.
    positions: Stride,
    /// For the chunked order, the visited lanes, starting with that of the first position. A lane is added at
    /// its first visit; afterwards they take turns.
    lanes: Vec<LaneOrdinals>,
    visited_lane_count: usize,
    /// Rounds of a lane from one visit to the next.
    round_step: u64,
    next_lane: usize,
}

/// The current piece of a lane, and the walk to the next one.
#[derive(Clone, Debug)]
struct LaneOrdinals {
    /// The round of the next visit.
    round: u64,
    walk: LaneWalk,
    /// The samples of the piece, as distances from `base`.
    offsets: Vec<u16>,
    base: u64,
    /// The round of the first of them.
    first_round: u64,
}

impl Ordinals {
    pub(super) fn new(plan: Plan, positions: Stride) -> Self {
        let positions = Stride { end: positions.end.min(plan.len()), ..positions };
        let all_lanes = plan.lanes().map_or(1, |lanes| lanes.lane_count());
        let visited_lane_count = in_memory(positions.lanes_of(all_lanes));
        let round_step = positions.rounds_to_next(all_lanes);
        Self { plan, positions, lanes: Vec::new(), visited_lane_count, round_step, next_lane: 0 }
    }

    fn next_ordinal(&mut self, position: u64) -> Option<u64> {
        let Arrangement::Chunked(lanes) = &self.plan.arrangement else {
            return Some(self.plan.extents.ordinal(self.plan.index_at(position)));
        };
        let lane = self.next_lane;
        if lane == self.lanes.len() {
            let lane_count = lanes.lane_count();
            self.lanes.push(LaneOrdinals::new(LaneWalk::new(lanes, position % lane_count, position / lane_count)));
        }
        self.next_lane = if lane + 1 == self.visited_lane_count { 0 } else { lane + 1 };
        self.lanes[lane].next_ordinal(lanes, &self.plan.extents, self.round_step)
    }
}

impl Iterator for Ordinals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let position = self.positions.next()?;
        self.next_ordinal(position)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl ExactSizeIterator for Ordinals {}

impl FusedIterator for Ordinals {}

impl LaneOrdinals {
    fn new(walk: LaneWalk) -> Self {
        Self { round: walk.round, walk, offsets: Vec::new(), base: 0, first_round: 0 }
    }

    /// Returns the next visited ordinal and advances by `round_step` rounds.
    fn next_ordinal(&mut self, lanes: &Lanes, extents: &Extents, round_step: u64) -> Option<u64> {
        let round = self.round;
        self.round = round.saturating_add(round_step);
        if round - self.first_round >= self.offsets.len() as u64 {
            self.walk.round = round;
            let piece = self.walk.next(lanes)?;
            self.base = piece.offsets_into(extents, &mut self.offsets);
            self.first_round = piece.first_round;
        }
        let offset = *self.offsets.get(in_memory(round - self.first_round))?;
        Some(self.base + u64::from(offset))
    }
}
