//! The pieces of a plan one after the other: of one lane, or of all lanes in the order of first need.
//!
//! Nothing is computed ahead: a walk is 32 bytes a lane, and the first piece costs as much as any other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::iter::FusedIterator;
use std::sync::Arc;

use super::lanes::Lanes;
use super::piece::Piece;
use super::ring::Spot;

/// How far a lane has been walked. Compared field by field, so by the next sample's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneWalk {
    pub(super) round: u64,
    lane: u64,
    /// Where the ring had the last piece, or will have the first.
    spot: Spot,
}

impl LaneWalk {
    pub(super) fn new(lanes: &Lanes, lane: u64, round: u64) -> Self {
        let bounds = lanes.lane(lane);
        let place = bounds.place_at(round.min(bounds.len() - 1));
        Self { round, lane, spot: lanes.locate(place) }
    }

    pub(super) fn next(&mut self, lanes: &Lanes) -> Option<Piece> {
        let bounds = lanes.lane(self.lane);
        if self.round >= bounds.len() {
            return None;
        }
        self.spot = lanes.locate_near(self.spot, bounds.place_at(self.round));
        let piece = lanes.piece(self.lane, &bounds, self.round, self.spot);
        self.round = piece.first_round + piece.len();
        Some(piece)
    }

    fn is_done(&self, lanes: &Lanes) -> bool {
        self.round >= lanes.lane(self.lane).len()
    }
}

/// The pieces of one lane: see [`Lanes::pieces`].
#[derive(Clone, Debug)]
pub struct Pieces {
    lanes: Arc<Lanes>,
    walk: LaneWalk,
}

impl Pieces {
    pub(super) fn new(lanes: Arc<Lanes>, walk: LaneWalk) -> Self {
        Self { lanes, walk }
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        self.walk.next(&self.lanes)
    }
}

impl FusedIterator for Pieces {}

/// The pieces of all lanes in the order of first need: see [`Lanes::schedule`].
#[derive(Clone, Debug)]
pub struct Schedule {
    lanes: Arc<Lanes>,
    /// Lanes whose first piece has been given. All first pieces come before any second one, since
    /// round 0 does: so the walks need not be begun together.
    begun_count: u64,
    walks: BinaryHeap<Reverse<LaneWalk>>,
}

impl Schedule {
    pub(super) fn new(lanes: Arc<Lanes>) -> Self {
        Self { lanes, begun_count: 0, walks: BinaryHeap::new() }
    }

    fn begin_lane(&mut self) -> Option<Piece> {
        let mut walk = LaneWalk::new(&self.lanes, self.begun_count, 0);
        self.begun_count += 1;
        let piece = walk.next(&self.lanes);
        if !walk.is_done(&self.lanes) {
            self.walks.push(Reverse(walk));
        }
        piece
    }

    fn resume_lane(&mut self) -> Option<Piece> {
        let mut head = self.walks.peek_mut()?;
        let piece = head.0.next(&self.lanes);
        if head.0.is_done(&self.lanes) {
            PeekMut::pop(head);
        }
        piece
    }
}

impl Iterator for Schedule {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.begun_count < self.lanes.lane_count() { self.begin_lane() } else { self.resume_lane() }
    }
}

impl FusedIterator for Schedule {}
