//! Random numbers from a seed.

use grainstore_format::SplitMix64;

/// A sequence that its seed determines.
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

impl Random {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next number below `bound`, which is not 0. The distribution is slightly uneven, which does not matter here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// Fills `bytes` with noise that nothing compresses.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next_u64().to_le_bytes()[..part.len()]);
        }
    }

    /// The numbers below `count` in random order.
    #[must_use]
    pub fn shuffled(&mut self, count: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..count).collect();
        for last in (1..order.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap_or(last);
            order.swap(last, other);
        }
        order
    }
}

/// Ordinals in random order, each once before any comes again.
#[derive(Debug, Clone)]
pub struct Ordinals {
    order: Vec<u64>,
    next: usize,
}

impl Ordinals {
    /// The ordinals below `count`, which is not 0.
    #[must_use]
    pub fn new(seed: u64, count: u64) -> Self {
        Self { order: Random::new(seed).shuffled(count), next: 0 }
    }

    /// The next ordinal.
    pub fn take_one(&mut self) -> u64 {
        let ordinal = self.order[self.next];
        self.next = (self.next + 1) % self.order.len();
        ordinal
    }

    /// The next `count` ordinals.
    pub fn take_many(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.take_one()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Ordinals, Random};

    #[test]
    fn a_seed_gives_the_same_permutation_each_time() {
        let order = Random::new(7).shuffled(1000);
        assert_eq!(order, Random::new(7).shuffled(1000));
        assert_ne!(order, Random::new(8).shuffled(1000));
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
    }

    #[test]
    fn ordinals_come_again_only_after_all_others() {
        let mut ordinals = Ordinals::new(7, 10);
        let mut first = ordinals.take_many(10);
        assert_eq!(ordinals.take_one(), first[0]);
        first.sort_unstable();
        assert!(first.into_iter().eq(0..10));
    }

    #[test]
    fn every_byte_of_a_tail_is_filled() {
        let mut bytes = [0; 4099];
        Random::new(3).fill(&mut bytes);
        assert!(bytes[4090..].iter().any(|&byte| byte != 0));
        assert!(bytes.iter().filter(|&&byte| byte == 0).count() < 60);
    }
}
