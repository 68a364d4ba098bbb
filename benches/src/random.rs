//! Random numbers from a seed: SplitMix64 (Steele, Lea, Flood 2014).

/// A sequence that its seed decides.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// The next number below `bound`, which is not 0. Slightly uneven, which no benchmark notices.
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

#[cfg(test)]
mod tests {
    use super::Random;

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
    fn every_byte_of_a_tail_is_filled() {
        let mut bytes = [0; 4099];
        Random::new(3).fill(&mut bytes);
        assert!(bytes[4090..].iter().any(|&byte| byte != 0));
        assert!(bytes.iter().filter(|&&byte| byte == 0).count() < 60);
    }
}
