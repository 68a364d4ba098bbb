//! A set of floating-point values, which tests 64 values at a time. NaN is in none. order.md: SUB-7.

use super::integers::pack;
use super::tree::Comparison;

/// The values that meet any item.
#[derive(Clone, Debug)]
pub(super) struct FloatSet(pub(super) Vec<FloatItem>);

#[derive(Clone, Copy, Debug)]
pub(super) enum FloatItem {
    Compare(Comparison, f64),
    Equal(f64),
    /// From the first on, below the second.
    Range(f64, f64),
}

impl FloatSet {
    /// Which of at most 64 values are in it: bit i for the i-th.
    pub(super) fn bits(&self, values: &[f64]) -> u64 {
        self.0.iter().fold(0, |bits, item| bits | item.bits(values))
    }
}

impl FloatItem {
    #[expect(clippy::float_cmp, reason = "the expression compares with ==")]
    fn bits(self, values: &[f64]) -> u64 {
        match self {
            Self::Compare(Comparison::Below, bound) => pack(values, |value| value < bound),
            Self::Compare(Comparison::AtMost, bound) => pack(values, |value| value <= bound),
            Self::Compare(Comparison::Above, bound) => pack(values, |value| value > bound),
            Self::Compare(Comparison::AtLeast, bound) => pack(values, |value| value >= bound),
            Self::Equal(other) => pack(values, |value| value == other),
            Self::Range(start, end) => pack(values, |value| value >= start && value < end),
        }
    }
}
