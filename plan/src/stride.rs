//! The positions that a rank visits: every n-th, from a first one.

use super::in_memory;

/// Positions `first`, `first + step`, ... below `end`. The step is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    /// The first position.
    pub first: u64,
    /// Distance from one position to the next.
    pub step: u64,
    /// The end: all positions are below it.
    pub end: u64,
}

impl Stride {
    /// All positions from `first` to `end`.
    pub(super) fn all(first: u64, end: u64) -> Self {
        Self { first, step: 1, end }
    }

    /// The position visited after `count` others, which may be past the end.
    pub(super) fn at(&self, count: u64) -> u64 {
        self.first.saturating_add(count.saturating_mul(self.step))
    }

    /// Number of positions.
    pub(super) fn len(&self) -> u64 {
        self.end.saturating_sub(self.first).div_ceil(self.step)
    }

    /// How many of `lane_count` lanes that take turns are visited.
    pub(super) fn lanes_of(&self, lane_count: u64) -> u64 {
        lane_count / common_divisor(self.step, lane_count)
    }

    /// Rounds of a lane from one visit to the next.
    pub(super) fn rounds_to_next(&self, lane_count: u64) -> u64 {
        self.step / common_divisor(self.step, lane_count)
    }
}

impl Iterator for Stride {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let position = self.first;
        (position < self.end).then(|| {
            self.first = position.saturating_add(self.step);
            position
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (in_memory(self.len()), Some(in_memory(self.len())))
    }
}

/// The greatest common divisor (Euclid); neither number is 0.
pub(super) fn common_divisor(a: u64, b: u64) -> u64 {
    let mut a = a;
    let mut b = b;
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_and_rounds_of_a_stride_are_those_that_its_positions_have() {
        for (step, lane_count) in [(1, 5), (5, 5), (2, 6), (4, 6), (7, 6), (12, 6), (5, 768), (24, 768), (3, 1)] {
            let stride = Stride { first: 3, step, end: 100_000 };
            let lanes: Vec<u64> = stride.map(|position| position % lane_count).collect();
            let distinct: std::collections::BTreeSet<&u64> = lanes.iter().collect();
            assert_eq!(distinct.len() as u64, stride.lanes_of(lane_count));
            let again = lanes.iter().skip(1).position(|lane| *lane == lanes[0]).unwrap() as u64 + 1;
            assert_eq!(again * step / lane_count, stride.rounds_to_next(lane_count));
        }
    }

    #[test]
    fn the_length_is_the_number_of_positions() {
        for (first, step, end) in [(0, 1, 0), (0, 1, 7), (3, 4, 3), (3, 4, 4), (3, 4, 7), (3, 4, 8), (9, 2, 5)] {
            let stride = Stride { first, step, end };
            assert_eq!(stride.count() as u64, stride.len());
        }
        let past_all = Stride { first: u64::MAX - 1, step: u64::MAX, end: u64::MAX };
        assert_eq!(past_all.collect::<Vec<_>>(), [u64::MAX - 1]);
    }
}
