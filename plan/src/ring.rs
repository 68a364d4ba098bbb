//! The ring of the chunked order: the units in shuffled order, and in each its extents, end to end.
//!
//! It takes 4 bytes a unit, and 4 more where a unit is not just one extent. The place at which a unit starts on the ring
//! is stored for every 64th unit only, and summed from there: an array of all of them would triple the ring. In a unit,
//! places follow indices, so the extent is found by its first index. order.md: PLN-5.

use std::ops::Range;

use super::draws::Draws;
use super::extents::Extents;
use super::units::Units;

/// Units between two landmarks: this costs an eighth of a byte a unit, and at most 63 additions a look-up.
const LANDMARK_EVERY: u32 = 64;

#[derive(Clone)]
pub(super) struct Ring {
    units: Units,
    /// The units in the order of the ring.
    order: Vec<u32>,
    /// The places at which the units of index 0, 64, 128, ... start.
    landmarks: Vec<u64>,
}

/// An extent on the ring, and where it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RingExtent {
    /// The index of its unit on the ring.
    index: u32,
    pub(super) extent: u32,
    /// The place at which it starts.
    pub(super) start: u64,
}

impl Ring {
    pub(super) fn new(extents: &Extents, units: Units, draws: Draws) -> Self {
        let mut order: Vec<u32> = (0..units.count()).collect();
        draws.shuffle(&mut order);
        let mut landmarks = Vec::with_capacity(order.len().div_ceil(LANDMARK_EVERY as usize));
        let mut start = 0;
        for indices in order.chunks(LANDMARK_EVERY as usize) {
            landmarks.push(start);
            start += indices.iter().map(|&unit| len_of(extents, units.extents(unit))).sum::<u64>();
        }
        Self { units, order, landmarks }
    }

    /// The extent that covers a place on the ring, which is below the sample count.
    pub(super) fn locate(&self, extents: &Extents, place: u64) -> RingExtent {
        let landmark = self.landmarks.partition_point(|&start| start <= place) - 1;
        let mut start = self.landmarks[landmark];
        let first_index = landmark * LANDMARK_EVERY as usize;
        for (index, &unit) in (landmark_index(landmark)..).zip(&self.order[first_index..]) {
            let unit = self.units.extents(unit);
            let end = start + len_of(extents, unit.clone());
            if place < end {
                // The unit's extents are neighbours: their samples are consecutive indices.
                let first = extents.samples(unit.start).start;
                let extent = extents.extent_among(unit, first + (place - start));
                return RingExtent { index, extent, start: start + (extents.samples(extent).start - first) };
            }
            start = end;
        }
        unreachable!("ring place {place} is past the last unit's end {start}")
    }

    /// As [`locate`](Self::locate), faster if the place is in the extent `near` or in the next one.
    pub(super) fn locate_near(&self, extents: &Extents, near: RingExtent, place: u64) -> RingExtent {
        [near, self.after(extents, near)]
            .into_iter()
            .find(|ring_extent| {
                let len = len_of(extents, ring_extent.extent..ring_extent.extent + 1);
                place.checked_sub(ring_extent.start).is_some_and(|skipped| skipped < len)
            })
            .unwrap_or_else(|| self.locate(extents, place))
    }

    fn after(&self, extents: &Extents, ring_extent: RingExtent) -> RingExtent {
        let RingExtent { index, extent, start } = ring_extent;
        let start = start + len_of(extents, extent..extent + 1);
        if extent + 1 < self.unit_at(index).end {
            RingExtent { index, extent: extent + 1, start }
        } else if index as usize + 1 < self.order.len() {
            RingExtent { index: index + 1, extent: self.unit_at(index + 1).start, start }
        } else {
            RingExtent { index: 0, extent: self.unit_at(0).start, start: 0 }
        }
    }

    /// The extents of the unit at an index of the ring.
    fn unit_at(&self, index: u32) -> Range<u32> {
        self.units.extents(self.order[index as usize])
    }
}

/// Samples of neighbouring extents.
fn len_of(extents: &Extents, neighbours: Range<u32>) -> u64 {
    extents.samples(neighbours.end - 1).end - extents.samples(neighbours.start).start
}

#[expect(clippy::cast_possible_truncation, reason = "an index is below the extent count, which is 32 bits")]
fn landmark_index(landmark: usize) -> u32 {
    landmark as u32 * LANDMARK_EVERY
}
