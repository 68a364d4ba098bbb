//! The ring of the chunked order: the extents in shuffled order, end to end.
//!
//! It takes 4 bytes an extent. The place at which an extent starts on the ring is stored for every 64th
//! extent only, and summed from there: an array of all of them would triple the ring. order.md: PLN-5.

use super::draws::Draws;
use super::extents::Extents;

/// Extents between two landmarks: this costs an eighth of a byte an extent, and at most 63 additions a look-up.
const LANDMARK_EVERY: u32 = 64;

#[derive(Clone)]
pub(super) struct Ring {
    /// The extents in the order of the ring.
    extents: Vec<u32>,
    /// The places at which the extents of index 0, 64, 128, ... start.
    landmarks: Vec<u64>,
}

/// An extent on the ring: its index on the ring, and the place at which it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RingExtent {
    pub(super) index: u32,
    pub(super) start: u64,
}

impl Ring {
    pub(super) fn new(extents: &Extents, draws: Draws) -> Self {
        let mut order: Vec<u32> = (0..extents.count()).collect();
        draws.shuffle(&mut order);
        let mut landmarks = Vec::with_capacity(order.len().div_ceil(LANDMARK_EVERY as usize));
        let mut start = 0;
        for indices in order.chunks(LANDMARK_EVERY as usize) {
            landmarks.push(start);
            start += indices.iter().map(|&extent| len_of(extents, extent)).sum::<u64>();
        }
        Self { extents: order, landmarks }
    }

    pub(super) fn extent(&self, ring_extent: RingExtent) -> u32 {
        self.extents[ring_extent.index as usize]
    }

    /// The extent that covers a place on the ring, which is below the sample count.
    pub(super) fn locate(&self, extents: &Extents, place: u64) -> RingExtent {
        let landmark = self.landmarks.partition_point(|&start| start <= place) - 1;
        let mut start = self.landmarks[landmark];
        let first_index = landmark * LANDMARK_EVERY as usize;
        for (index, &extent) in (landmark_index(landmark)..).zip(&self.extents[first_index..]) {
            let end = start + len_of(extents, extent);
            if place < end {
                return RingExtent { index, start };
            }
            start = end;
        }
        unreachable!("ring place {place} is past the last extent's end {start}")
    }

    /// As [`locate`](Self::locate), faster if the place is in the extent `near` or in the next one.
    pub(super) fn locate_near(&self, extents: &Extents, near: RingExtent, place: u64) -> RingExtent {
        [near, self.after(extents, near)]
            .into_iter()
            .find(|&ring_extent| {
                place
                    .checked_sub(ring_extent.start)
                    .is_some_and(|skipped| skipped < len_of(extents, self.extent(ring_extent)))
            })
            .unwrap_or_else(|| self.locate(extents, place))
    }

    fn after(&self, extents: &Extents, ring_extent: RingExtent) -> RingExtent {
        if ring_extent.index as usize + 1 == self.extents.len() {
            RingExtent { index: 0, start: 0 }
        } else {
            RingExtent {
                index: ring_extent.index + 1,
                start: ring_extent.start + len_of(extents, self.extent(ring_extent)),
            }
        }
    }
}

fn len_of(extents: &Extents, extent: u32) -> u64 {
    let samples = extents.samples(extent);
    samples.end - samples.start
}

#[expect(clippy::cast_possible_truncation, reason = "an index is below the extent count, which is 32 bits")]
fn landmark_index(landmark: usize) -> u32 {
    landmark as u32 * LANDMARK_EVERY
}
