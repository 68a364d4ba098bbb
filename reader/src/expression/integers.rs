//! A set of integers, which tests 64 values at a time.
//!
//! The integers of a column, `int64` or `uint64` at most, are counted from the smallest of their type: so they are one
//! kind of number, a `u64`, and keep their order.

use std::ops::RangeInclusive;

/// Largest span of a table: 8 KiB.
const TABLE_SPAN: u64 = 1 << 16;

/// Where integers are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// From 0: unsigned ones.
    Zero,
    /// From -2^63: signed ones.
    Lowest,
}

impl Base {
    fn smallest(self) -> i128 {
        match self {
            Self::Zero => 0,
            Self::Lowest => i64::MIN.into(),
        }
    }

    /// The number of a signed integer.
    pub(super) fn of_signed(value: i64) -> u64 {
        value.cast_unsigned() ^ 1 << 63
    }

    /// The numbers of those integers of the range that can occur.
    fn numbers(self, range: &RangeInclusive<i128>) -> Option<(u64, u64)> {
        let low = range.start().saturating_sub(self.smallest()).max(0);
        let high = range.end().saturating_sub(self.smallest()).min(u64::MAX.into());
        Some((u64::try_from(low).ok()?, u64::try_from(high).ok()?)).filter(|(low, high)| low <= high)
    }
}

/// A set of numbers. One range and small spans are tested in a step or two, others by a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IntegerSet {
    Range {
        low: u64,
        span: u64,
    },
    Table {
        low: u64,
        span: u64,
        bits: Vec<u64>,
    },
    /// Ascending, with gaps between them.
    Ranges(Vec<(u64, u64)>),
}

impl IntegerSet {
    /// The integers of any of the ranges.
    pub(super) fn new(ranges: &[RangeInclusive<i128>], base: Base) -> Self {
        let ranges = merged(ranges.iter().filter_map(|range| base.numbers(range)).collect());
        match (ranges.first(), ranges.last()) {
            (Some(&(low, high)), _) if ranges.len() == 1 => Self::Range { low, span: high - low },
            (Some(&(low, _)), Some(&(_, high))) if high - low < TABLE_SPAN => {
                Self::Table { low, span: high - low, bits: table(low, &ranges) }
            }
            _ => Self::Ranges(ranges),
        }
    }

    /// Which of at most 64 numbers are in it: bit i for the i-th.
    pub(super) fn bits(&self, numbers: &[u64]) -> u64 {
        match self {
            Self::Range { low, span } => pack(numbers, |number| number.wrapping_sub(*low) <= *span),
            Self::Table { low, span, bits } => pack(numbers, |number| {
                let place = number.wrapping_sub(*low);
                place <= *span && bit(bits, place)
            }),
            Self::Ranges(ranges) => pack(numbers, |number| {
                let behind = ranges.partition_point(|(low, _)| *low <= number);
                ranges[..behind].last().is_some_and(|(_, high)| number <= *high)
            }),
        }
    }
}

/// Bit i is the result of `test` for the i-th value.
pub(super) fn pack<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> u64 {
    values.iter().rev().fold(0, |bits, &value| bits << 1 | u64::from(test(value)))
}

fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// A bit for each number from `low` on; the ranges span less than `TABLE_SPAN`.
fn table(low: u64, ranges: &[(u64, u64)]) -> Vec<u64> {
    let mut bits = vec![0; (TABLE_SPAN / 64) as usize];
    for place in ranges.iter().flat_map(|(first, last)| first - low..=last - low) {
        bits[(place / 64) as usize] |= 1 << (place % 64);
    }
    bits
}

fn bit(bits: &[u64], place: u64) -> bool {
    bits[(place / 64) as usize] >> (place % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds() -> impl Strategy<Value = i128> {
        let edges = [i64::MIN.into(), i64::MAX.into(), 0, u64::MAX.into(), i128::MIN, i128::MAX];
        prop_oneof![-70_i128..70, -70_000_i128..70_000, proptest::sample::select(edges.to_vec())]
    }

    proptest! {
        #[test]
        fn a_set_holds_what_its_ranges_hold(ranges in prop::collection::vec((bounds(), bounds()), 0..5), signed: bool) {
            let ranges: Vec<_> = ranges.into_iter().map(|(low, high)| low..=high).collect();
            let base = if signed { Base::Lowest } else { Base::Zero };
            let set = IntegerSet::new(&ranges, base);
            let near = ranges.iter().flat_map(|range| [*range.start(), *range.end()]);
            let values = near.flat_map(|bound| (-2..=2).map(move |by| bound.saturating_add(by)));
            for value in values.chain(-80..80) {
                let number = match signed {
                    true => i64::try_from(value).ok().map(Base::of_signed),
                    false => u64::try_from(value).ok(),
                };
                if let Some(number) = number {
                    let expected = ranges.iter().any(|range| range.contains(&value));
                    prop_assert_eq!(set.bits(&[!number, number]) >> 1, u64::from(expected), "{}", value);
                }
            }
        }
    }

    #[test]
    fn the_shape_follows_the_span() {
        let set = |ranges: &[RangeInclusive<i128>]| IntegerSet::new(ranges, Base::Zero);
        assert_eq!(set(&[3..=5, 6..=9]), IntegerSet::Range { low: 3, span: 6 });
        assert!(matches!(set(&[3..=5, 7..=9]), IntegerSet::Table { low: 3, span: 6, .. }));
        assert!(matches!(set(&[3..=5, 65_538..=65_538]), IntegerSet::Table { .. }));
        assert_eq!(set(&[3..=5, 65_539..=65_539]), IntegerSet::Ranges(vec![(3, 5), (65_539, 65_539)]));
        assert_eq!(set(&[-9..=-1]), IntegerSet::Ranges(vec![]));
    }
}
