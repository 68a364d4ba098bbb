//! The ordinals of an epoch one after the other, each piece shuffled once.

use std::iter::FusedIterator;

use super::lanes::Lanes;
use super::piece::Piece;
use super::walk::LaneWalk;
use super::{Kind, Plan, in_memory};

/// The ordinals of a plan from a position on: see [`Plan::ordinals_from`].
#[derive(Clone, Debug)]
pub struct Ordinals {
    plan: Plan,
    position: u64,
    /// For the chunked order, the lanes from the one that the first position is of, as they are
    /// met; then round and round.
    lanes: Vec<LaneOrdinals>,
    next_lane: u64,
}

/// The rest of the piece that a lane is in, and the walk to its next.
#[derive(Clone, Debug)]
struct LaneOrdinals {
    walk: LaneWalk,
    piece: Option<Piece>,
    slots: Vec<u16>,
    visited_count: usize,
}

impl Ordinals {
    pub(super) fn new(plan: Plan, position: u64) -> Self {
        Self { plan, position, lanes: Vec::new(), next_lane: 0 }
    }
}

impl Iterator for Ordinals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.position >= self.plan.len() {
            return None;
        }
        let position = self.position;
        self.position += 1;
        let Kind::Chunked(lanes) = &self.plan.kind else {
            return Some(self.plan.at(position));
        };
        let index = in_memory(self.next_lane);
        if index == self.lanes.len() {
            self.lanes.push(LaneOrdinals::new(lanes, position));
        }
        self.next_lane = (self.next_lane + 1) % lanes.lane_count();
        self.lanes[index].next(lanes)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = in_memory(self.plan.len().saturating_sub(self.position));
        (left, Some(left))
    }
}

impl ExactSizeIterator for Ordinals {}

impl FusedIterator for Ordinals {}

impl LaneOrdinals {
    fn new(lanes: &Lanes, position: u64) -> Self {
        let walk = LaneWalk::new(lanes, position % lanes.lane_count(), position / lanes.lane_count());
        Self { walk, piece: None, slots: Vec::new(), visited_count: 0 }
    }

    fn next(&mut self, lanes: &Lanes) -> Option<u64> {
        if self.visited_count == self.slots.len() {
            self.enter_next_piece(lanes)?;
        }
        let slot = self.slots[self.visited_count];
        self.visited_count += 1;
        self.piece.as_ref().map(|piece| piece.ordinal_of(slot))
    }

    fn enter_next_piece(&mut self, lanes: &Lanes) -> Option<()> {
        let round = self.walk.round;
        let piece = self.walk.next(lanes)?;
        piece.slots_into(&mut self.slots);
        // A piece that is entered in its middle: the first, where the ordinals do not begin at 0.
        self.visited_count = in_memory(round - piece.first_round);
        self.piece = Some(piece);
        Some(())
    }
}
