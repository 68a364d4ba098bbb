//! The chunked order: lanes cut from a ring of shuffled units (groups of extents; one extent each by default).
//!
//! ```text
//! ring    | e3      | e0  | e7        | e1    | ...    units end to end, each extent of a unit rotated
//! turn              ^ places are counted from here round the ring
//! cut     | lane 0        | lane 1        | ...        their lengths differ by one sample at most
//! phase   |.....^         |...^           | ...        where a lane begins; it wraps at its end
//! piece   |     |---|-----|                            a lane's part of an extent, visited in shuffled order
//! ```
//!
//! A *place* is the number of a sample round the ring, counted from the turn.
//! Position p of the epoch is sample p div L (its *round*) of lane p mod L. Rotation, turn and phase
//! make every sample equally likely at every position. order.md: PLN-5.
//!
//! The test vector of order.md, step by step: 12 samples in 5 extents, 3 lanes.
//!
//! ```text
//! extents   0 1 2 | 3 4 | 5 6 7 8 | 9 | 10 11
//! ring      2 0 1 | 10 11 | 4 3 | 5 6 7 8 | 9     shuffled; extent 0 is rotated by 2, extent 1 by 1
//! turn 9    7 8 9 2 0 1 10 11 4 3 5 6             place 0 is the ring's tenth sample
//! cut       7 8 9 2 | 0 1 10 11 | 4 3 5 6
//! phase     9 2 7 8 | 0 1 10 11 | 6 4 3 5         the lanes begin at their samples 2, 0 and 3, and wrap
//! pieces    9,2,7 8 | 0 1,11 10 | 6,3 4,5         each is shuffled
//! epoch     9 0 6 2 1 3 7 11 4 8 10 5             the lanes in turn
//! ```

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use super::draws::{Draws, key, longer_key};
use super::extents::Extents;
use super::piece::{Piece, PieceParts};
use super::ring::{Ring, RingExtent};
use super::units::Units;

const RING_STREAM: u64 = 1;
const TURN_STREAM: u64 = 2;
const PHASE_STREAM: u64 = 3;
const PIECE_STREAM: u64 = 4;
const ROTATION_STREAM: u64 = 5;

/// The chunked order of one epoch: 12 bytes an extent, 8 of which all epochs share.
pub struct Lanes {
    extents: Arc<Extents>,
    ring: Ring,
    lane_count: u64,
    group: NonZeroU32,
    turn: u64,
    phases: Draws,
    piece_key: u64,
    rotations: Draws,
}

/// The places of a lane, counted from the turn, and the place at which it begins.
pub(super) struct LaneRange {
    places: Range<u64>,
    begin: u64,
}

impl Lanes {
    /// Computes the ring. `lane_count` is at least 1 and at most the sample count, so no lane is empty.
    pub(super) fn new(extents: Arc<Extents>, epoch_key: u64, lane_count: u64, group: NonZeroU32) -> Self {
        debug_assert!((1..=extents.sample_count()).contains(&lane_count), "{lane_count} lanes");
        let stream = |number| Draws::new(key(&[epoch_key, number]));
        Self {
            ring: Ring::new(&extents, Units::new(&extents, group), stream(RING_STREAM)),
            lane_count,
            group,
            turn: stream(TURN_STREAM).below(0, extents.sample_count()),
            phases: stream(PHASE_STREAM),
            piece_key: key(&[epoch_key, PIECE_STREAM]),
            rotations: stream(ROTATION_STREAM),
            extents,
        }
    }

    /// Number of lanes: position p is of lane p mod this, in round p div this.
    #[must_use]
    pub fn lane_count(&self) -> u64 {
        self.lane_count
    }

    /// Extents of a unit of the ring.
    #[must_use]
    pub fn group(&self) -> NonZeroU32 {
        self.group
    }

    /// Samples of a lane, which is the number of its rounds. Lanes differ by one sample at most.
    ///
    /// # Panics
    /// If `lane` is not below [`lane_count`](Self::lane_count).
    #[must_use]
    pub fn lane_len(&self, lane: u64) -> u64 {
        self.lane(lane).len()
    }

    /// The index at a position below the sample count.
    pub(super) fn at(&self, position: u64) -> u64 {
        let lane_index = position % self.lane_count;
        let round = position / self.lane_count;
        let lane = self.lane(lane_index);
        let piece = self.piece(lane_index, &lane, round, self.locate(lane.place_at(round)));
        piece.visit(round - piece.first_round)
    }

    pub(super) fn sample_count(&self) -> u64 {
        self.extents.sample_count()
    }

    pub(super) fn lane(&self, lane: u64) -> LaneRange {
        assert!(lane < self.lane_count, "lane {lane} of {}", self.lane_count);
        let len = self.sample_count() / self.lane_count;
        let longer_count = self.sample_count() % self.lane_count;
        let start = lane * len + lane.min(longer_count);
        let end = start + len + u64::from(lane < longer_count);
        LaneRange { places: start..end, begin: start + self.phases.below(lane, end - start) }
    }

    /// The extent on the ring that covers a place.
    pub(super) fn locate(&self, place: u64) -> RingExtent {
        self.ring.locate(&self.extents, self.on_ring(place))
    }

    pub(super) fn locate_near(&self, near: RingExtent, place: u64) -> RingExtent {
        self.ring.locate_near(&self.extents, near, self.on_ring(place))
    }

    /// The piece that holds `round`'s sample of a lane; `ring_extent` covers that sample.
    pub(super) fn piece(&self, lane_index: u64, lane: &LaneRange, round: u64, ring_extent: RingExtent) -> Piece {
        let extent = ring_extent.extent;
        let samples = self.extents.samples(extent);
        let extent_len = samples.end - samples.start;
        let place = lane.place_at(round);
        let skipped = self.on_ring(place) - ring_extent.start;
        // If the extent straddles the turn, a place before the turn saturates to 0: the lane does not start earlier.
        let places = lane.cut_at_phase(place, place.saturating_sub(skipped)..place + (extent_len - skipped));
        let before = place - places.start;
        let rotation = self.rotations.below(u64::from(extent), extent_len);
        Piece::new(PieceParts {
            lane: lane_index,
            first_round: round - before,
            extent,
            skipped: (skipped - before + rotation) % extent_len,
            len: places.end - places.start,
            draws: Draws::new(longer_key(self.piece_key, places.start)),
            samples,
        })
    }

    fn on_ring(&self, place: u64) -> u64 {
        let sum = place + self.turn;
        if sum < self.sample_count() { sum } else { sum - self.sample_count() }
    }
}

impl LaneRange {
    pub(super) fn len(&self) -> u64 {
        self.places.end - self.places.start
    }

    pub(super) fn place_at(&self, round: u64) -> u64 {
        let until_wrap = self.places.end - self.begin;
        if round < until_wrap { self.begin + round } else { self.places.start + (round - until_wrap) }
    }

    /// The part of an extent's places round `place` that remains after the lane's cuts and its phase.
    fn cut_at_phase(&self, place: u64, extent: Range<u64>) -> Range<u64> {
        let low = extent.start.max(self.places.start);
        let high = extent.end.min(self.places.end);
        if place < self.begin { low..high.min(self.begin) } else { low.max(self.begin)..high }
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Lanes")
            .field("lane_count", &self.lane_count)
            .field("group", &self.group)
            .field("extents", &self.extents)
            .finish_non_exhaustive()
    }
}
