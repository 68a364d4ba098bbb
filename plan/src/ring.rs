//! The ring of the chunked order: the extents in shuffled order, end to end.
//!
//! It keeps 4 bytes an extent. Where a rank starts on the ring is kept for every 64th only, and
//! summed from there: an array of all of them would triple the ring. spec.md: PLN-5.

use super::extents::Extents;
use super::splitmix::Draws;

/// Ranks between two landmarks: an eighth of a byte an extent, and 63 additions at most.
const LANDMARK_EVERY: u32 = 64;

#[derive(Clone)]
pub(super) struct Ring {
    /// The extent at every rank.
    extents: Vec<u32>,
    /// The ring place at which ranks 0, 64, 128, ... start.
    landmarks: Vec<u64>,
}

/// A rank of the ring and the ring place at which its extent starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) rank: u32,
    pub(super) start: u64,
}

impl Ring {
    pub(super) fn new(extents: &Extents, draws: Draws) -> Self {
        let mut order: Vec<u32> = (0..extents.count()).collect();
        draws.shuffle(&mut order);
        let mut landmarks = Vec::with_capacity(order.len().div_ceil(LANDMARK_EVERY as usize));
        let mut start = 0;
        for ranks in order.chunks(LANDMARK_EVERY as usize) {
            landmarks.push(start);
            start += ranks.iter().map(|&extent| len_of(extents, extent)).sum::<u64>();
        }
        Self { extents: order, landmarks }
    }

    pub(super) fn extent(&self, spot: Spot) -> u32 {
        self.extents[spot.rank as usize]
    }

    /// The spot of the extent that covers a ring place below the sample count.
    pub(super) fn locate(&self, extents: &Extents, place: u64) -> Spot {
        let landmark = self.landmarks.partition_point(|&start| start <= place) - 1;
        let mut start = self.landmarks[landmark];
        let first_rank = landmark * LANDMARK_EVERY as usize;
        for (rank, &extent) in (landmark_rank(landmark)..).zip(&self.extents[first_rank..]) {
            let end = start + len_of(extents, extent);
            if place < end {
                return Spot { rank, start };
            }
            start = end;
        }
        unreachable!("ring place {place} lies past the last extent's end {start}")
    }

    /// As [`locate`](Self::locate), quicker where the place lies in the extent of `near` or in the next one.
    pub(super) fn locate_near(&self, extents: &Extents, near: Spot, place: u64) -> Spot {
        [near, self.after(extents, near)]
            .into_iter()
            .find(|&spot| {
                place.checked_sub(spot.start).is_some_and(|skipped| skipped < len_of(extents, self.extent(spot)))
            })
            .unwrap_or_else(|| self.locate(extents, place))
    }

    fn after(&self, extents: &Extents, spot: Spot) -> Spot {
        if spot.rank as usize + 1 == self.extents.len() {
            Spot { rank: 0, start: 0 }
        } else {
            Spot { rank: spot.rank + 1, start: spot.start + len_of(extents, self.extent(spot)) }
        }
    }
}

fn len_of(extents: &Extents, extent: u32) -> u64 {
    let samples = extents.samples(extent);
    samples.end - samples.start
}

#[expect(clippy::cast_possible_truncation, reason = "a rank is below the extent count, which is 32 bits")]
fn landmark_rank(landmark: usize) -> u32 {
    landmark as u32 * LANDMARK_EVERY
}
