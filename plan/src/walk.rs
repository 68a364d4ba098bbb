//! The pieces of a plan one after the other: of one lane, or of all lanes in the order of first need.
//!
//! Nothing is computed ahead: a lane takes 32 bytes, and the first piece costs as much as any other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::iter::FusedIterator;
use std::sync::Arc;

use super::extents::Extents;
use super::in_memory;
use super::lanes::Lanes;
use super::piece::Piece;
use super::ring::RingExtent;
use super::stride::Stride;

impl Lanes {
    /// The pieces of a lane in the order of their visit.
    ///
    /// # Panics
    /// If `lane` is not below [`lane_count`](Self::lane_count).
    #[must_use]
    pub fn pieces(self: &Arc<Self>, lane: u64) -> LanePieces {
        self.pieces_from(lane, 0)
    }

    /// The pieces of a lane from the one that holds `round`'s sample. The first of them may have
    /// begun in an earlier round; there is none if the lane ends before `round`.
    ///
    /// # Panics
    /// If `lane` is not below [`lane_count`](Self::lane_count).
    #[must_use]
    pub fn pieces_from(self: &Arc<Self>, lane: u64, round: u64) -> LanePieces {
        LanePieces { lanes: Arc::clone(self), walk: LaneWalk::new(self, lane, round) }
    }

    /// The pieces of all lanes in the order of first need, which is the order to read them in.
    #[must_use]
    pub fn schedule(self: &Arc<Self>) -> PieceSchedule {
        self.schedule_of(Stride::all(0, self.sample_count()))
    }

    /// The pieces that hold samples of some positions, in the order of first need.
    pub fn schedule_of(self: &Arc<Self>, positions: Stride) -> PieceSchedule {
        let end = positions.end.min(self.sample_count());
        PieceSchedule::new(Arc::clone(self), Stride { end, ..positions })
    }
}

/// How far a lane has been walked. Do not reorder the fields: the derived order (round, lane) is the order
/// of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneWalk {
    pub(super) round: u64,
    lane: u64,
    /// The extent of the last piece, or of the first one to come.
    ring_extent: RingExtent,
}

impl LaneWalk {
    pub(super) fn new(lanes: &Lanes, lane: u64, round: u64) -> Self {
        let bounds = lanes.lane(lane);
        let place = bounds.place_at(round.min(bounds.len() - 1));
        Self { round, lane, ring_extent: lanes.locate(place) }
    }

    /// The piece that holds the round's sample; the round is then the one after it.
    pub(super) fn next(&mut self, lanes: &Lanes) -> Option<Piece> {
        let bounds = lanes.lane(self.lane);
        if self.round >= bounds.len() {
            return None;
        }
        self.ring_extent = lanes.locate_near(self.ring_extent, bounds.place_at(self.round));
        let piece = lanes.piece(self.lane, &bounds, self.round, self.ring_extent);
        self.round = piece.first_round + piece.len();
        Some(piece)
    }
}

/// The pieces of one lane: see [`Lanes::pieces`].
#[derive(Clone, Debug)]
pub struct LanePieces {
    lanes: Arc<Lanes>,
    walk: LaneWalk,
}

impl Iterator for LanePieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        self.walk.next(&self.lanes)
    }
}

impl FusedIterator for LanePieces {}

/// A piece, and which of its samples are visited: those of every `step`-th round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visits {
    /// The piece.
    pub piece: Piece,
    /// Rounds of the piece before the first visit.
    pub skipped: u64,
    /// Rounds from one visit to the next.
    pub step: u64,
    /// Number of visits, at least 1.
    pub count: u64,
}

impl Visits {
    /// Whether all of the piece is visited.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.count == self.piece.len()
    }

    /// Replaces `offsets` by the samples that are visited, in order of visit, as distances from the ordinal that is
    /// returned. Costs one shuffle of the piece.
    pub fn offsets_into(&self, extents: &Extents, offsets: &mut Vec<u16>) -> u64 {
        let base = self.piece.offsets_into(extents, offsets);
        if !self.is_whole() {
            let mut next = in_memory(self.skipped);
            for visit in 0..in_memory(self.count) {
                offsets[visit] = offsets[next];
                next += in_memory(self.step);
            }
            offsets.truncate(in_memory(self.count));
        }
        base
    }

    /// The indices that are visited, in order of visit. Costs one shuffle of the piece.
    #[must_use]
    pub fn indices(&self) -> Vec<u64> {
        let skipped = in_memory(self.skipped);
        let step = in_memory(self.step);
        self.piece.indices().into_iter().skip(skipped).step_by(step).take(in_memory(self.count)).collect()
    }
}

/// The pieces of all lanes, or of those that a rank visits, in the order of first need: see [`Lanes::schedule`].
#[derive(Clone, Debug)]
pub struct PieceSchedule {
    lanes: Arc<Lanes>,
    /// Positions that are visited.
    stride: Stride,
    /// Rounds of a lane from one visit to the next.
    round_step: u64,
    /// Lanes that are visited.
    visited_lane_count: u64,
    /// Lanes whose first piece has been returned. All first pieces come before any second one, since
    /// each lane is visited once before any is visited twice: so the lanes need not be started together.
    started_count: u64,
    walks: BinaryHeap<Reverse<LaneWalk>>,
}

impl PieceSchedule {
    fn new(lanes: Arc<Lanes>, stride: Stride) -> Self {
        let round_step = stride.rounds_to_next(lanes.lane_count());
        let visited_lane_count = stride.lanes_of(lanes.lane_count());
        Self { lanes, stride, round_step, visited_lane_count, started_count: 0, walks: BinaryHeap::new() }
    }

    fn start_lane(&mut self) -> Option<Visits> {
        let position = self.stride.at(self.started_count);
        if position >= self.stride.end {
            self.started_count = self.visited_lane_count;
            return None;
        }
        self.started_count += 1;
        let lane = position % self.lanes.lane_count();
        let round = position / self.lanes.lane_count();
        let mut walk = LaneWalk::new(&self.lanes, lane, round);
        let visits = self.visit(&mut walk);
        if walk.round < self.end_round(lane) {
            self.walks.push(Reverse(walk));
        }
        visits
    }

    fn resume_lane(&mut self) -> Option<Visits> {
        let mut walk = self.walks.peek()?.0;
        let visits = self.visit(&mut walk);
        let end_round = self.end_round(walk.lane);
        let mut head = self.walks.peek_mut()?;
        head.0 = walk;
        if walk.round >= end_round {
            PeekMut::pop(head);
        }
        visits
    }

    /// The piece of the walk's round, and what is visited of it; the walk's round is then the next that is visited.
    fn visit(&self, walk: &mut LaneWalk) -> Option<Visits> {
        let first = walk.round;
        let lane = walk.lane;
        let piece = walk.next(&self.lanes)?;
        let count = (walk.round.min(self.end_round(lane)) - first).div_ceil(self.round_step);
        walk.round = first.saturating_add(count.saturating_mul(self.round_step));
        Some(Visits { skipped: first - piece.first_round, piece, step: self.round_step, count })
    }

    /// The first round of the lane in which nothing is visited any more.
    fn end_round(&self, lane: u64) -> u64 {
        self.stride.end.saturating_sub(lane).div_ceil(self.lanes.lane_count())
    }
}

impl Iterator for PieceSchedule {
    type Item = Visits;

    fn next(&mut self) -> Option<Visits> {
        if self.started_count < self.visited_lane_count
            && let Some(visits) = self.start_lane()
        {
            return Some(visits);
        }
        self.resume_lane()
    }
}

impl FusedIterator for PieceSchedule {}
