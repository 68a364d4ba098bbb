//! The seed of what is drawn for a sample: augmentations give the same for any number of threads, workers and ranks.
//!
//! It says nothing of an order. order.md: DRW-1.

use super::draws::{key, longer_key};

/// One visit of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleVisit {
    /// The caller's seed.
    pub seed: u64,
    /// The epoch's number.
    pub epoch: u64,
    /// The sample's number in the dataset, or in several that are read as one.
    pub ordinal: u64,
    /// 0; k for the k-th further visit of a sample that an epoch visits several times.
    pub repeat: u64,
}

impl SampleVisit {
    /// The first part of every key of a sample, which no key of an order has.
    const STREAM: u64 = 9;

    /// 128 bits to seed a random number generator with, for all that is drawn for this visit.
    pub fn draw_seed(self) -> u128 {
        let visit = key(&[Self::STREAM, self.seed, self.epoch, self.ordinal, self.repeat]);
        (u128::from(longer_key(visit, 0)) << 64) | u128::from(longer_key(visit, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DRW-1: the vectors of the page.
    #[test]
    fn visits_have_the_seeds_of_the_definition() {
        let of = |[seed, epoch, ordinal, repeat]: [u64; 4]| SampleVisit { seed, epoch, ordinal, repeat }.draw_seed();
        assert_eq!(of([0, 0, 0, 0]), 0xC224_ACE9_53DD_EC8B_CE01_5051_57D9_96BA);
        assert_eq!(of([7, 3, 1234, 0]), 0x2F03_A735_FB36_A652_A34F_8C03_3F58_555D);
        assert_eq!(of([7, 3, 1234, 1]), 0xCD52_9717_C847_747E_F0A9_5D7F_6E6C_205B);
        assert_eq!(of([u64::MAX, 1, u64::MAX, 0]), 0x3EFA_8AD8_7F86_E012_3FED_781C_B37F_DF54);
    }
}
