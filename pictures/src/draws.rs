//! Random numbers of one picture.

use grainstore_format::SplitMix64;

/// SplitMix64, from 128 bits.
pub(crate) struct Draws(SplitMix64);

impl Draws {
    pub(crate) fn new(bits: u128) -> Self {
        let [low, high] = [bits & u128::from(u64::MAX), bits >> 64].map(|half| u64::try_from(half).unwrap_or(0));
        // Of 64 bits, one step later: what the low half was mixed to, and the high half.
        Self(SplitMix64::new(SplitMix64::new(low).next_u64() ^ high))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from `low` to `high`, with 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(crate) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        low + (high - low) * unit
    }

    /// A number below `count`, which is above 0.
    pub(crate) fn below(&mut self, count: u32) -> u32 {
        // The high half of a product: the bias is below 2^-32.
        let product = u128::from(self.next()) * u128::from(count);
        u32::try_from(product >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_depend_on_all_bits_and_are_spread_evenly() {
        let first = |bits: u128| Draws::new(bits).uniform(0.0, 1.0);
        assert!((first(1) - first(1)).abs() < f64::EPSILON);
        for bit in 0..128 {
            assert!((first(1 << bit) - first(0)).abs() > 0.0, "bit {bit}");
        }
        let mut draws = Draws::new(7);
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            counts[draws.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
