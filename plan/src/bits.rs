//! Bits with a directory: how many are set before a position, and where the n-th that is set is.
//!
//! The directory has the number of set bits before every count block of 2048, 8 bytes each. Without the `popcnt`
//! instruction, which not every x86-64 has, a word is counted in about 3 ns, so a look-up counts at most 32 words
//! (100 ns).

use std::ops::Range;

use xxhash_rust::xxh64::Xxh64;

use super::in_memory;

/// Bits of a word.
pub(super) const WORD_BITS: u64 = 64;

/// Words between two counts of the directory.
const BLOCK_WORDS: u64 = 32;

/// Bits between two counts of the directory.
const BLOCK_BITS: u64 = WORD_BITS * BLOCK_WORDS;

/// A list of bits that does not change.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Bits {
    len: u64,
    /// Bit i is bit i mod 64 of word i / 64; bits past the last are zero.
    words: Vec<u64>,
    /// Set bits before every block; the last is those of all blocks.
    counts: Vec<u64>,
}

impl Bits {
    /// The first `len` bits of the words, which are as many as those bits need. The rest of the last word is cleared.
    pub(super) fn new(len: u64, mut words: Vec<u64>) -> Self {
        debug_assert_eq!(words.len() as u64, len.div_ceil(WORD_BITS), "words for {len} bits");
        if let (Some(last), used @ 1..) = (words.last_mut(), len % WORD_BITS) {
            *last &= (1 << used) - 1;
        }
        let counts = counts_of(&words);
        Self { len, words, counts }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Number of set bits.
    pub(super) fn count(&self) -> u64 {
        self.counts[self.counts.len() - 1]
    }

    /// Whether a bit is set; false for one past the last.
    #[inline]
    pub(super) fn get(&self, position: u64) -> bool {
        position < self.len && self.words[in_memory(position / WORD_BITS)] >> (position % WORD_BITS) & 1 == 1
    }

    /// The position of the `index`-th bit that is set, counted from 0; there are more than `index`.
    pub(super) fn nth(&self, index: u64) -> u64 {
        // The last block that begins at or before the index: an empty block begins where the next one does.
        let block = self.counts.partition_point(|&count| count <= index) - 1;
        let mut left = index - self.counts[block];
        let mut word = block * in_memory(BLOCK_WORDS);
        loop {
            let count = u64::from(self.words[word].count_ones());
            if left < count {
                return word as u64 * WORD_BITS + nth_bit(self.words[word], left);
            }
            left -= count;
            word += 1;
        }
    }

    /// How many set bits are before a position.
    pub(super) fn count_before(&self, position: u64) -> u64 {
        if position >= self.len {
            return self.count();
        }
        let block = position / BLOCK_BITS;
        let word = in_memory(position / WORD_BITS);
        let whole = &self.words[in_memory(block * BLOCK_WORDS)..word];
        let cut = self.words[word] & ((1 << (position % WORD_BITS)) - 1);
        self.counts[in_memory(block)] + ones(whole) + u64::from(cut.count_ones())
    }

    /// The position of the last set bit at or before `position`, which is below the length; there is one.
    pub(super) fn last_at(&self, position: u64) -> u64 {
        let number = position / WORD_BITS;
        let shift = WORD_BITS - 1 - position % WORD_BITS;
        // Usually it is near.
        let cut = self.words[in_memory(number)] << shift;
        if cut != 0 { position - u64::from(cut.leading_zeros()) } else { self.nth(self.count_before(position) - 1) }
    }

    /// The positions of the set bits of a range, ascending.
    pub(super) fn ones_in(&self, range: Range<u64>) -> impl Iterator<Item = u64> + Clone {
        let start = range.start;
        let end = range.end.min(self.len);
        let words = start / WORD_BITS..end.div_ceil(WORD_BITS);
        words.flat_map(move |word| {
            let first = word * WORD_BITS;
            let wanted = bits_below(end, first) & !bits_below(start, first);
            bits_of(self.words[in_memory(word)] & wanted).map(move |bit| first + bit)
        })
    }

    /// Adds its bytes to a hash: the length in bits divided by 8, rounded up, least significant bit first.
    pub(super) fn hash_into(&self, hasher: &mut Xxh64) {
        let mut left = in_memory(self.len.div_ceil(8));
        let mut bytes = Vec::new();
        for block in self.words.chunks(in_memory(BLOCK_WORDS)) {
            bytes.clear();
            bytes.extend(block.iter().flat_map(|word| word.to_le_bytes()).take(left));
            left -= bytes.len();
            hasher.update(&bytes);
        }
    }
}

/// The bits below `position`, in the word of the positions `first..first + 64`.
pub(super) fn bits_below(position: u64, first: u64) -> u64 {
    match position.saturating_sub(first) {
        count @ 0..WORD_BITS => (1 << count) - 1,
        _ => u64::MAX,
    }
}

fn ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

fn counts_of(words: &[u64]) -> Vec<u64> {
    let mut sum = 0;
    let blocks = words.chunks(in_memory(BLOCK_WORDS)).map(|block| {
        sum += ones(block);
        sum
    });
    std::iter::once(0).chain(blocks).collect()
}

/// The position of the `index`-th bit that is set; there are more than `index` set bits.
fn nth_bit(word: u64, index: u64) -> u64 {
    let mut rest = word;
    let mut left = index;
    let mut position = 0;
    // Whole bytes first, then bit by bit: a word of 64 bits is done in 15 steps.
    while left >= u64::from((rest & 0xFF).count_ones()) {
        left -= u64::from((rest & 0xFF).count_ones());
        rest >>= 8;
        position += 8;
    }
    for _ in 0..left {
        rest &= rest - 1;
    }
    position + u64::from(rest.trailing_zeros())
}

/// The positions of the bits that are set, ascending.
fn bits_of(word: u64) -> impl Iterator<Item = u64> + Clone {
    let rests = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
    rests.take_while(|rest| *rest != 0).map(|rest| u64::from(rest.trailing_zeros()))
}
