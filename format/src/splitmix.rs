//! SplitMix64 (Steele, Lea, Flood 2014): the mixer of the plan, and a sequence of numbers from a seed. order.md: PLN-1.
//!
//! Orders that the specification defines come from here, so no value may ever change.

/// The step of the sequence: the golden ratio in units of 2^-64.
pub const MIX_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Mixes 64 bits: each bit of the input changes about half the bits of the output, and no two inputs give the same.
/// Zero stays zero.
pub const fn finalise(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Mixes 64 bits as [`finalise`] does, one step further: the mixer of every order. order.md: PLN-1.
pub const fn mix(word: u64) -> u64 {
    finalise(word.wrapping_add(MIX_STEP))
}

/// A sequence of numbers that its seed determines.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next number.
    pub const fn next_u64(&mut self) -> u64 {
        let number = mix(self.state);
        self.state = self.state.wrapping_add(MIX_STEP);
        number
    }

    /// Returns a number below `bound`, or 0 where that is 0: the high half of the next number times `bound`. Some
    /// numbers are more likely than others by `bound` in 2^64, which is too little to measure.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PLN-1
    #[test]
    fn the_sequence_of_seed_0_is_the_published_one() {
        let mut numbers = SplitMix64::new(0);
        let published = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F];
        assert_eq!([(); 3].map(|()| numbers.next_u64()), published);
        assert_eq!((mix(0), mix(MIX_STEP), finalise(0)), (published[0], published[1], 0));
    }

    #[test]
    fn every_number_below_the_bound_is_drawn_about_equally_often() {
        let mut numbers = SplitMix64::new(7);
        let mut counts = [0_u32; 5];
        for _ in 0..5000 {
            counts[usize::try_from(numbers.below(5)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_eq!((numbers.below(1), numbers.below(0)), (0, 0));
    }
}
