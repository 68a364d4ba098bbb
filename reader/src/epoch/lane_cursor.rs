//! The position of a lane: the unit that it visits, and the units that it visits next.

use std::collections::VecDeque;

use super::unit_number::UnitNumber;
use super::walk::VisitedSamples;
use crate::plan::Extents;

/// Walks a lane sample by sample.
#[derive(Debug, Default)]
pub(super) struct LaneCursor {
    /// The number of the unit whose samples are visited now.
    unit: UnitNumber,
    /// Its samples in the order of their visit, as distances from an ordinal: 2 bytes a sample, since lanes hold many.
    offsets: Vec<u16>,
    base: u64,
    next: usize,
    /// The units after it.
    waiting: VecDeque<(UnitNumber, VisitedSamples)>,
}

impl LaneCursor {
    /// Appends samples of a unit. A unit that was joined from several is appended several times.
    pub(super) fn push(&mut self, unit: UnitNumber, samples: VisitedSamples) {
        self.waiting.push_back((unit, samples));
    }

    /// The next sample: its unit's number, and its ordinal. `None` where no further unit is known.
    pub(super) fn next(&mut self, extents: &Extents) -> Option<(UnitNumber, u64)> {
        if self.next == self.offsets.len() {
            let (unit, samples) = self.waiting.pop_front()?;
            self.unit = unit;
            self.base = samples.offsets_into(extents, &mut self.offsets);
            self.next = 0;
        }
        let offset = *self.offsets.get(self.next)?;
        self.next += 1;
        Some((self.unit, self.base + u64::from(offset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ExtentsBuilder;

    #[test]
    fn samples_of_one_unit_come_after_those_of_the_one_before() {
        let mut builder = ExtentsBuilder::new(4096);
        builder.chunk(9, 0).unwrap();
        let extents = builder.finish();
        let mut lane = LaneCursor::default();
        assert_eq!(lane.next(&extents), None);
        let seven = UnitNumber(7);
        let three = UnitNumber(3);
        lane.push(seven, VisitedSamples::Consecutive(4..6));
        lane.push(three, VisitedSamples::One(0));
        let samples = [lane.next(&extents), lane.next(&extents), lane.next(&extents)];
        assert_eq!(samples, [Some((seven, 4)), Some((seven, 5)), Some((three, 0))]);
        assert_eq!(lane.next(&extents), None);
        lane.push(seven, VisitedSamples::One(8));
        assert_eq!(lane.next(&extents), Some((seven, 8)));
    }
}
