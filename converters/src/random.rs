//! Draws from the seed of a conversion: the order of the samples, and the seed of the dataset's hash.
//!
//! Both come from SplitMix64, each from a separate stream, so that knowing the order reveals nothing simple about the
//! hash. A caller that packs keys chosen by strangers passes a secret seed, so that the keys cannot be made to collide.

use grainstore_format::{SplitMix64, finalise, mix, to_usize};

/// The stream of the order: "order" in ASCII.
const ORDER_STREAM: u64 = 0x6f_7264_6572;
/// The stream of the hash seed: "hash" in ASCII.
const HASH_STREAM: u64 = 0x6861_7368;
/// The stream of windows: "window" in ASCII.
const WINDOW_STREAM: u64 = 0x7769_6e64_6f77;
/// The streams of groups: "group" in ASCII.
const GROUP_STREAM: u64 = 0x67_726f_7570;

/// The seed of a dataset's key hash, from the seed of its conversion.
pub fn hash_seed(seed: u64) -> u64 {
    draws(seed, HASH_STREAM).next_u64()
}

/// The numbers 0 to `count` - 1 in an order drawn from `seed`; all orders are equally likely.
pub(crate) fn permutation(count: usize, seed: u64) -> Vec<usize> {
    let mut draws = draws(seed, ORDER_STREAM);
    let mut numbers: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        numbers.swap(last, index(&mut draws, last + 1));
    }
    numbers
}

/// Shuffles `items` by draws from `seed`, with a separate stream for each `number`.
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64, number: u64) {
    let mut draws = draws(seed, finalise(GROUP_STREAM ^ number));
    for last in (1..items.len()).rev() {
        items.swap(last, index(&mut draws, last + 1));
    }
}

/// The draws of a window over a stream.
pub(crate) fn draws_of_window(seed: u64) -> SplitMix64 {
    draws(seed, WINDOW_STREAM)
}

/// Draws an index of a list of `len` items, which is not empty.
pub(crate) fn index(draws: &mut SplitMix64, len: usize) -> usize {
    to_usize(draws.below(len as u64))
}

fn draws(seed: u64, stream: u64) -> SplitMix64 {
    SplitMix64::new(finalise(mix(seed) ^ stream))
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
