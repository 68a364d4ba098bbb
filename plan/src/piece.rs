//! A piece: a lane's part of an extent, visited in shuffled order.
//!
//! Samples are given as indices, which are ordinals unless the epoch is over a subset. order.md: PLN-5.

use std::ops::Range;

use super::draws::Draws;
use super::extents::{Extents, offset_in_extent};
use super::in_memory;

/// A lane's part of an extent. Its samples are known at once; their order is computed on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The lane that visits the piece.
    pub lane: u64,
    /// The round that visits its first sample: position `first_round * lane_count + lane`. The
    /// others follow, one a round.
    pub first_round: u64,
    /// The extent that the piece is a part of.
    pub extent: u32,
    /// The slots of the piece are these indices, followed by `wrapped` if the rotation wraps inside the piece.
    head: Range<u64>,
    wrapped: Range<u64>,
    draws: Draws,
}

/// The arguments of [`Piece::new`].
pub(super) struct PieceParts {
    pub(super) lane: u64,
    pub(super) first_round: u64,
    pub(super) extent: u32,
    /// The extent's indices.
    pub(super) samples: Range<u64>,
    /// Samples of the extent before the piece's first slot, rotation included; less than the extent has.
    pub(super) skipped: u64,
    /// Samples of the piece; at most what the extent has.
    pub(super) len: u64,
    pub(super) draws: Draws,
}

impl Piece {
    pub(super) fn new(parts: PieceParts) -> Self {
        let PieceParts { lane, first_round, extent, samples, skipped, len, draws } = parts;
        let start = samples.start + skipped;
        let head = start..samples.end.min(start + len);
        let wrapped = samples.start..samples.start + (len - (head.end - head.start));
        Self { lane, first_round, extent, head, wrapped, draws }
    }

    /// Samples of the piece: at least 1, at most 65,536.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a piece is never empty")]
    pub fn len(&self) -> u64 {
        (self.head.end - self.head.start) + (self.wrapped.end - self.wrapped.start)
    }

    /// The indices of its samples as one or two ranges, none empty. There is a second one if the rotation
    /// of the extent wraps inside the piece; it then begins where the extent does.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        [self.head.clone(), self.wrapped.clone()].into_iter().filter(|range| !range.is_empty())
    }

    /// The indices of its samples in the order of their visit. Costs one shuffle of the piece.
    #[must_use]
    pub fn indices(&self) -> Vec<u64> {
        let mut indices: Vec<u64> = self.head.clone().chain(self.wrapped.clone()).collect();
        self.draws.shuffle(&mut indices);
        indices
    }

    /// Replaces `slots` by the piece's slots in the order of their visit: [`indices`](Self::indices)
    /// at a quarter of its memory, for callers that store the order of many pieces.
    pub fn slots_into(&self, slots: &mut Vec<u16>) {
        slots.clear();
        slots.extend((0..=u16::MAX).take(in_memory(self.len())));
        self.draws.shuffle(slots);
    }

    /// Replaces `offsets` by its samples in the order of their visit, as distances from the ordinal that is returned: 2
    /// bytes a sample, for callers that hold the order of many pieces.
    pub fn offsets_into(&self, extents: &Extents, offsets: &mut Vec<u16>) -> u64 {
        self.slots_into(offsets);
        let first_index = extents.samples(self.extent).start;
        let base = extents.ordinal(first_index);
        if extents.subset().is_some() {
            let ordinals: Vec<u64> = self.ranges().flat_map(|range| extents.ordinals(range)).collect();
            for offset in offsets {
                *offset = offset_in_extent(ordinals[usize::from(*offset)] - base);
            }
        } else {
            for offset in offsets {
                *offset = offset_in_extent(self.index_of(*offset) - first_index);
            }
        }
        base
    }

    /// The index of a slot below [`len`](Self::len).
    #[must_use]
    pub fn index_of(&self, slot: u16) -> u64 {
        self.index_at(u64::from(slot))
    }

    /// The index of the visit `visit` rounds after the first: `indices()[visit]` with no memory,
    /// in up to one draw a sample of the piece.
    pub(super) fn visit(&self, visit: u64) -> u64 {
        self.index_at(self.draws.source_of(visit, self.len()))
    }

    fn index_at(&self, slot: u64) -> u64 {
        let head_len = self.head.end - self.head.start;
        slot.checked_sub(head_len).map_or(self.head.start + slot, |over| self.wrapped.start + over)
    }
}
