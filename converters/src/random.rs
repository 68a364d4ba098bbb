//! What a conversion draws from its seed: the order of the samples, and the seed of the dataset's hash.
//!
//! Both come from SplitMix64, each from a stream of its own, so that knowing the order tells nothing simple about the
//! hash. Whoever packs keys that strangers chose passes a secret seed: keys cannot then be made to collide.

/// The stream of the order: "order" in ASCII.
const ORDER_STREAM: u64 = 0x6f_7264_6572;
/// The stream of the hash seed: "hash" in ASCII.
const HASH_STREAM: u64 = 0x6861_7368;
/// The stream of windows: "window" in ASCII.
const WINDOW_STREAM: u64 = 0x7769_6e64_6f77;
/// The streams of groups: "group" in ASCII.
const GROUP_STREAM: u64 = 0x67_726f_7570;
/// The golden ratio in 2^-64, SplitMix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The seed of a dataset's key hash, from the seed of its conversion.
pub fn hash_seed(seed: u64) -> u64 {
    Draws::new(seed, HASH_STREAM).next()
}

/// The numbers 0 to `count` - 1 in an order drawn from `seed`; all orders are equally likely.
pub(crate) fn permutation(count: usize, seed: u64) -> Vec<usize> {
    let mut draws = Draws::new(seed, ORDER_STREAM);
    let mut numbers: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let bound = last as u64 + 1;
        numbers.swap(last, grainstore_format::to_usize(draws.below(bound)));
    }
    numbers
}

/// Shuffles `items` by draws from `seed`, in a stream of their own for each `number`.
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64, number: u64) {
    let mut draws = Draws::new(seed, finalise(GROUP_STREAM ^ number));
    for last in (1..items.len()).rev() {
        items.swap(last, draws.index(last + 1));
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): a counter and a finaliser.
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    /// The draws of a window over a stream.
    pub(crate) fn of_window(seed: u64) -> Self {
        Self::new(seed, WINDOW_STREAM)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn index(&mut self, bound: usize) -> usize {
        grainstore_format::to_usize(self.below(bound as u64))
    }

    fn new(seed: u64, stream: u64) -> Self {
        Self { state: finalise(finalise(seed.wrapping_add(STEP)) ^ stream) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        finalise(self.state)
    }

    /// A number below `bound`: the high half of draw times bound. It is uneven by `bound` in 2^64, which nobody sees.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

fn finalise(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_holds_every_number_once() {
        for count in [0, 1, 2, 3, 100, 1000] {
            let mut numbers = permutation(count, 7);
            numbers.sort_unstable();
            assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn orders_and_hash_seeds_never_change_between_versions() {
        assert_eq!(permutation(8, 0), [1, 4, 3, 0, 5, 7, 6, 2]);
        assert_eq!(permutation(8, 1), [3, 5, 7, 1, 4, 6, 0, 2]);
        assert_eq!((hash_seed(0), hash_seed(1)), (0xfa8a_f212_72b2_a3a7, 0x3b2e_8ab5_2188_a796));
    }

    #[test]
    fn every_order_of_four_is_about_as_likely_as_any_other() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..24_000 {
            *counts.entry(permutation(4, seed)).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let chi_squared: f64 = counts.values().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
        // 23 degrees of freedom: 49.7 is passed once in a thousand times.
        assert!(chi_squared < 49.7, "chi squared {chi_squared}");
    }
}
