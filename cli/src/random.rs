//! Random numbers that only the command draws, from SplitMix64.

use grainstore_format::SplitMix64;

/// A number in [0, 1), with 53 random bits.
pub(crate) fn fraction(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
