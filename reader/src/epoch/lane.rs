//! A lane: the units that it visits, one after the other, each sample by sample.

use std::collections::VecDeque;

/// Where a lane is. Looked at for every sample, so what is asked then stands first and in one place.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The unit entered last, and how many of its samples have not been visited.
    current: u32,
    left_count: u32,
    /// Numbers of submitted units that have not been entered, in the order of their visit.
    waiting: VecDeque<u32>,
}

impl Lane {
    /// Appends a submitted unit.
    pub(super) fn push(&mut self, unit: u32) {
        self.waiting.push_back(unit);
    }

    /// The unit of the next sample, where it has been entered.
    pub(super) fn visit(&mut self) -> Option<u32> {
        self.left_count = self.left_count.checked_sub(1)?;
        Some(self.current)
    }

    /// The unit to be entered next, where it has been submitted.
    pub(super) fn next(&self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// Enters the next unit, which has so many samples.
    pub(super) fn enter(&mut self, sample_count: u32) {
        if let Some(unit) = self.waiting.pop_front() {
            (self.current, self.left_count) = (unit, sample_count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_visited_one_after_the_other() {
        let mut lane = Lane::default();
        assert_eq!((lane.visit(), lane.next()), (None, None));
        [7, 3].into_iter().for_each(|unit| lane.push(unit));
        assert_eq!((lane.visit(), lane.next()), (None, Some(7)));
        lane.enter(2);
        assert_eq!([lane.visit(), lane.visit(), lane.visit()], [Some(7), Some(7), None]);
        lane.enter(1);
        assert_eq!([lane.visit(), lane.visit(), lane.next()], [Some(3), None, None]);
    }
}
