//! Hashes of all samples, as many at once as memory is meant for.
//!
//! If the items of all samples would be too many, the source is read once for each half of the hashes, or each quarter,
//! and so on. Equal hashes are always in memory together.

use crate::ConvertError;

/// Bytes of items in memory at once.
pub(super) const HELD_LEN: usize = 384 << 20;

/// What is held of a sample.
pub(super) trait Hashed {
    /// Equal for items that are to be compared.
    fn hash(&self) -> u64;
}

/// The hashes that one round holds: those with this remainder.
#[derive(Clone, Copy)]
struct Share {
    modulus: u64,
    remainder: u64,
}

impl Share {
    fn has(self, item: &impl Hashed) -> bool {
        item.hash() % self.modulus == self.remainder
    }
}

/// The items of a round.
pub(super) struct Round<T> {
    share: Share,
    items: Vec<T>,
    items_max: usize,
    /// The shares of later rounds.
    left: Vec<Share>,
}

impl<T: Hashed> Round<T> {
    /// Takes an item if it belongs to this round.
    pub(super) fn take(&mut self, item: T) {
        if !self.share.has(&item) {
            return;
        }
        self.items.push(item);
        if self.items.len() > self.items_max {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let Share { modulus, remainder } = self.share;
        self.left.push(Share { modulus: 2 * modulus, remainder: modulus + remainder });
        self.share = Share { modulus: 2 * modulus, remainder };
        self.items.retain(|item| self.share.has(item));
        // If all hashes are the same, no round holds fewer.
        self.items_max = self.items_max.max(2 * self.items.len());
    }
}

/// Holds at most `items_max` items at once. `read` gives the items of all samples to a round, and `finish` gets those
/// that the round held.
pub(super) fn in_rounds<T: Hashed>(
    items_max: usize,
    mut read: impl FnMut(&mut Round<T>) -> Result<(), ConvertError>,
    mut finish: impl FnMut(Vec<T>) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    let mut left = vec![Share { modulus: 1, remainder: 0 }];
    while let Some(share) = left.pop() {
        let mut round = Round { share, items: Vec::new(), items_max, left: std::mem::take(&mut left) };
        read(&mut round)?;
        left = round.left;
        finish(round.items)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    impl Hashed for u64 {
        fn hash(&self) -> u64 {
            *self
        }
    }

    /// The rounds of these items.
    fn rounds(items_max: usize, items: &[u64]) -> Vec<Vec<u64>> {
        let mut rounds = Vec::new();
        let read = |round: &mut Round<u64>| {
            items.iter().for_each(|&item| round.take(item));
            Ok(())
        };
        let finish = |items| {
            rounds.push(items);
            Ok(())
        };
        in_rounds(items_max, read, finish).unwrap();
        rounds
    }

    #[test]
    fn every_item_is_in_one_round_together_with_its_equals() {
        let items: Vec<u64> = (0..1000).map(|number| number * number % 331).collect();
        for items_max in [1, 7, 100, 999, 1000] {
            let rounds = rounds(items_max, &items);
            assert_eq!(rounds.len() > 1, items_max < 1000);
            for (number, round) in rounds.iter().enumerate() {
                let others = rounds.iter().enumerate().filter(|&(other, _)| other != number);
                assert!(others.flat_map(|(_, other)| other).all(|item| !round.contains(item)));
            }
            let mut found = rounds.concat();
            found.sort_unstable();
            let mut expected = items.clone();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
        assert!(rounds(100, &items).iter().all(|round| round.len() <= 100));
    }

    #[test]
    fn rounds_end_if_all_items_are_equal() {
        assert_eq!(rounds(3, &[8; 1000]).concat(), [8; 1000]);
    }
}
