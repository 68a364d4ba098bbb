//! SplitMix64: the keyed hash from which every random number of a plan comes, and the shuffle made of them.
//!
//! A draw is a function of a key and a number, not of the draws before it. This lets a plan compute
//! any position by itself. order.md: PLN-1.

use grainstore_format::mix;

use super::in_memory;

/// The key of a list of parts.
pub(super) fn key(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |prefix, &part| longer_key(prefix, part))
}

/// The key of a list one part longer than the one whose key is `prefix`.
pub(super) const fn longer_key(prefix: u64, part: u64) -> u64 {
    mix(prefix ^ part)
}

/// An endless sequence of random numbers, each computed from its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Draws {
    /// `key(stream)`: the part of `key(stream, number)` that all draws share.
    prefix: u64,
}

impl Draws {
    pub(super) const fn new(stream: u64) -> Self {
        Self { prefix: longer_key(0, stream) }
    }

    /// Draw `number`, uniform over `0..bound`: the high half of key times bound.
    pub(super) const fn below(self, number: u64, bound: u64) -> u64 {
        ((longer_key(self.prefix, number) as u128 * bound as u128) >> 64) as u64
    }

    /// Shuffles in place: Fisher-Yates, from the last item down.
    pub(super) fn shuffle<T>(self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let number = last as u64;
            items.swap(last, in_memory(self.below(number, number + 1)));
        }
    }

    /// The index before a shuffle of `count` items of the item that is at `place` after it.
    ///
    /// The swaps are undone from `place` up to the last; those below `place` never touch it. So it
    /// needs no memory, and `count - place` draws.
    pub(super) const fn source_of(self, place: u64, count: u64) -> u64 {
        let mut source = self.below(place, place + 1);
        let mut last = place + 1;
        while last < count {
            if self.below(last, last + 1) == source {
                source = last;
            }
            last += 1;
        }
        source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PLN-1
    #[test]
    fn mixer_and_keys_give_the_published_values() {
        // The first outputs of SplitMix64 seeded with 0: the finaliser of 0 and of one step of its counter.
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(key(&[]), 0);
        assert_eq!(key(&[7]), mix(7));
        assert_eq!(key(&[7, 3]), mix(mix(7) ^ 3));
    }

    /// PLN-1
    #[test]
    fn draw_is_the_high_half_of_key_times_bound() {
        for number in [0, 1, 99, u64::MAX] {
            let product = u128::from(key(&[5, number])) * 1000;
            assert_eq!(u128::from(Draws::new(5).below(number, 1000)), product >> 64);
        }
    }

    /// PLN-1
    #[test]
    fn one_item_of_a_shuffle_is_found_without_shuffling() {
        for count in [1, 2, 3, 10, 257] {
            let mut items: Vec<u64> = (0..count).collect();
            Draws::new(count).shuffle(&mut items);
            let found: Vec<u64> = (0..count).map(|place| Draws::new(count).source_of(place, count)).collect();
            assert_eq!(found, items);
        }
    }
}
