//! The full order: a permutation of all samples, computed position by position.
//!
//! A balanced Feistel network permutes the numbers of an even count of bits, 64 of them or at most four
//! times as many as there are samples; a result that is not an ordinal goes through the network again, until one is.
//! Eight rounds: with four, a chi-squared test of position against sample fails for a small dataset.
//! order.md: PLN-4.

use grainstore_format::mix;

use super::draws::key;

const STREAM: u64 = 6;
const ROUND_COUNT: usize = 8;
/// Bits of the smallest network: on fewer, eight rounds are measurably not uniform, and more rounds do not cure it.
const BITS_MIN: u32 = 6;

/// The permutation of one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permutation {
    sample_count: u64,
    half_bits: u32,
    round_keys: [u64; ROUND_COUNT],
}

impl Permutation {
    /// `sample_count` is at least 1 and at most 2^62, so that no shift below is by 0 or by 64.
    pub(super) fn new(epoch_key: u64, sample_count: u64) -> Self {
        debug_assert!((1..=1 << 62).contains(&sample_count), "{sample_count} samples");
        let bits = (u64::BITS - (sample_count - 1).leading_zeros()).max(BITS_MIN);
        let mut round_keys = [0; ROUND_COUNT];
        for (round, round_key) in (0..).zip(&mut round_keys) {
            *round_key = key(&[epoch_key, STREAM, round]);
        }
        Self { sample_count, half_bits: bits.div_ceil(2), round_keys }
    }

    /// The ordinal at a position below the sample count.
    pub(super) fn at(&self, position: u64) -> u64 {
        let mut number = self.pass(position);
        while number >= self.sample_count {
            number = self.pass(number);
        }
        number
    }

    fn pass(&self, number: u64) -> u64 {
        let mut left = number >> self.half_bits;
        let mut right = number & ((1 << self.half_bits) - 1);
        for round_key in self.round_keys {
            (left, right) = (right, left ^ (mix(round_key ^ right) >> (u64::BITS - self.half_bits)));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PLN-4
    #[test]
    fn network_is_the_smallest_of_an_even_number_of_bits() {
        for (sample_count, half_bits) in
            [(1, 3), (2, 3), (5, 3), (17, 3), (64, 3), (65, 4), (256, 4), (257, 5), (1 << 48, 24), ((1 << 48) + 1, 25)]
        {
            assert_eq!(Permutation::new(0, sample_count).half_bits, half_bits, "{sample_count} samples");
        }
    }
}
