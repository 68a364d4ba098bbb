//! The position of a lane: the unit that it visits, and the units that it visits next.

use std::collections::VecDeque;
use std::sync::Arc;

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
    /// For each sample, its repeat; empty where the epoch has no repeats.
    repeats: Vec<u32>,
    /// The units after it.
    waiting: VecDeque<WaitingSamples>,
}

/// Samples of a unit that its lane does not visit yet.
#[derive(Debug)]
pub(super) struct WaitingSamples {
    pub(super) unit: UnitNumber,
    /// The number of their epoch, of which the schedule has the extents.
    pub(super) epoch: u32,
    pub(super) samples: VisitedSamples,
}

impl LaneCursor {
    /// Appends samples of a unit. A unit that was joined from several is appended several times.
    pub(super) fn push(&mut self, waiting: WaitingSamples) {
        self.waiting.push_back(waiting);
    }

    /// The next sample: its unit's number, and its ordinal. `None` where no further unit is known.
    pub(super) fn next(&mut self, extents: &ExtentsOfEpochs) -> Option<(UnitNumber, u64)> {
        if self.next == self.offsets.len() {
            let WaitingSamples { unit, epoch, samples } = self.waiting.pop_front()?;
            let extents = extents.of(epoch);
            self.unit = unit;
            self.base = samples.offsets_into(extents, &mut self.offsets);
            self.next = 0;
            self.repeats.clear();
            if extents.has_repeats() {
                samples.repeats_into(extents, &mut self.repeats);
            }
        }
        let offset = *self.offsets.get(self.next)?;
        self.next += 1;
        Some((self.unit, self.base + u64::from(offset)))
    }

    /// The repeat of the sample that [`next`](Self::next) returned last.
    pub(super) fn repeat(&self) -> u64 {
        let last = self.next.checked_sub(1);
        last.and_then(|last| self.repeats.get(last)).map_or(0, |&repeat| u64::from(repeat))
    }
}

/// The extents of the epochs that have waiting samples: two at most, which follow each other.
#[derive(Debug)]
pub(super) struct ExtentsOfEpochs([Arc<Extents>; 2]);

impl ExtentsOfEpochs {
    pub(super) fn new(extents: Arc<Extents>) -> Self {
        Self([Arc::clone(&extents), extents])
    }

    pub(super) fn of(&self, epoch: u32) -> &Arc<Extents> {
        &self.0[(epoch & 1) as usize]
    }

    pub(super) fn set(&mut self, epoch: u32, extents: &Arc<Extents>) {
        self.0[(epoch & 1) as usize] = Arc::clone(extents);
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
        let extents = ExtentsOfEpochs::new(Arc::new(builder.finish()));
        let waiting = |unit, samples| WaitingSamples { unit, epoch: 0, samples };
        let mut lane = LaneCursor::default();
        assert_eq!(lane.next(&extents), None);
        let seven = UnitNumber(7);
        let three = UnitNumber(3);
        lane.push(waiting(seven, VisitedSamples::Consecutive(4..6)));
        lane.push(waiting(three, VisitedSamples::One(0)));
        let samples = [lane.next(&extents), lane.next(&extents), lane.next(&extents)];
        assert_eq!(samples, [Some((seven, 4)), Some((seven, 5)), Some((three, 0))]);
        assert_eq!(lane.next(&extents), None);
        lane.push(waiting(seven, VisitedSamples::One(8)));
        assert_eq!(lane.next(&extents), Some((seven, 8)));
    }
}
