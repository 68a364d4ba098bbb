//! A subset: which samples of a dataset an epoch visits, one bit a sample.
//!
//! The n-th wanted ordinal and the number of wanted ones before an ordinal are found through a small directory:
//! the number of wanted samples before every count block of 2048, 8 bytes each. Without the `popcnt` instruction, which
//! not every x86-64 has, a word is counted in about 3 ns, so a look-up counts at most 32 words (100 ns).

use std::fmt;
use std::ops::Range;

use grainstore_format::MAX_SAMPLES;
use grainstore_format::memory::{NoMemory, reserve};
use xxhash_rust::xxh64::Xxh64;

use super::in_memory;

/// Samples of a word of the bitmap.
const WORD_SAMPLES: u64 = 64;

/// Words between two counts of the directory.
const BLOCK_WORDS: u64 = 32;

/// Samples between two counts of the directory.
const BLOCK_SAMPLES: u64 = WORD_SAMPLES * BLOCK_WORDS;

/// Some of the samples of a dataset: all, none or any of them.
///
/// ```
/// use grainstore_plan::Subset;
///
/// let subset = Subset::from_ordinals(10, [7, 2, 3])?;
/// assert_eq!((subset.len(), subset.ordinal(2), subset.count_before(7)), (3, 7, 2));
/// assert_eq!(subset.ordinals_in(3..8).collect::<Vec<_>>(), [3, 7]);
/// # Ok::<(), grainstore_plan::SubsetError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Subset {
    sample_count: u64,
    /// Sample i is bit i mod 64 of word i / 64; bits past the last sample are zero.
    words: Vec<u64>,
    /// Wanted samples before every block; the last is those of all blocks.
    counts: Vec<u64>,
    hash: u64,
}

/// Why a subset cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubsetError {
    /// A sample that the dataset does not have.
    #[error("subset has ordinal {ordinal}, the dataset has {sample_count} samples")]
    OrdinalOutOfRange {
        /// The first such ordinal.
        ordinal: u64,
        /// Samples of the dataset.
        sample_count: u64,
    },
    /// A range that ends past the dataset.
    #[error("subset has ordinals {start}..{end}, the dataset has {sample_count} samples")]
    RangeOutOfRange {
        /// First ordinal of the range.
        start: u64,
        /// Ordinal behind its last.
        end: u64,
        /// Samples of the dataset.
        sample_count: u64,
    },
    /// The bitmap has the wrong length.
    #[error("subset is a bitmap of {found} words, {sample_count} samples need {expected}")]
    WordCount {
        /// Number of words given.
        found: u64,
        /// Number of words that the samples need.
        expected: u64,
        /// Samples of the dataset.
        sample_count: u64,
    },
    /// The system has no memory for the bitmap.
    #[error("bitmap of a subset: {0}")]
    NoMemory(#[from] NoMemory),
    /// More samples than a dataset can have.
    #[error("subset is of {sample_count} samples, at most {MAX_SAMPLES} can be numbered")]
    TooManySamples {
        /// The number of samples given.
        sample_count: u64,
    },
}

impl Subset {
    /// The samples of `ordinals`, given in any order; one that occurs twice counts once.
    ///
    /// # Errors
    /// If an ordinal is not below `sample_count`.
    pub fn from_ordinals(sample_count: u64, ordinals: impl IntoIterator<Item = u64>) -> Result<Self, SubsetError> {
        let mut words = no_samples(sample_count)?;
        for ordinal in ordinals {
            if ordinal >= sample_count {
                return Err(SubsetError::OrdinalOutOfRange { ordinal, sample_count });
            }
            words[in_memory(ordinal / WORD_SAMPLES)] |= 1 << (ordinal % WORD_SAMPLES);
        }
        Ok(Self::of(sample_count, words))
    }

    /// The samples of a range of ordinals, which may be empty.
    ///
    /// # Errors
    /// If the range ends past `sample_count`.
    pub fn from_range(sample_count: u64, ordinals: Range<u64>) -> Result<Self, SubsetError> {
        let Range { start, end } = ordinals;
        if end > sample_count {
            return Err(SubsetError::RangeOutOfRange { start, end, sample_count });
        }
        let mut words = no_samples(sample_count)?;
        for (first, word) in (0..).step_by(64).zip(&mut words) {
            *word = bits_below(end, first) & !bits_below(start, first);
        }
        Ok(Self::of(sample_count, words))
    }

    /// The samples whose bit is set: sample i is bit i mod 64 of word i / 64. Bits past the last sample are cleared.
    ///
    /// # Errors
    /// If the number of words is not `sample_count / 64`, rounded up.
    pub fn from_words(sample_count: u64, words: Vec<u64>) -> Result<Self, SubsetError> {
        let expected = word_count(sample_count)?;
        if words.len() != expected {
            let found = words.len() as u64;
            let expected = expected as u64;
            return Err(SubsetError::WordCount { found, expected, sample_count });
        }
        Ok(Self::of(sample_count, words))
    }

    fn of(sample_count: u64, mut words: Vec<u64>) -> Self {
        if let (Some(last), used @ 1..) = (words.last_mut(), sample_count % WORD_SAMPLES) {
            *last &= (1 << used) - 1;
        }
        let counts = counts_of(&words);
        let hash = hash_of(sample_count, &words);
        Self { sample_count, words, counts, hash }
    }

    /// Samples of the dataset, wanted or not.
    #[must_use]
    pub fn sample_count(&self) -> u64 {
        self.sample_count
    }

    /// Samples of the subset.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counts[self.counts.len() - 1]
    }

    /// Whether the subset has no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether sample `ordinal` is in it; false for one that the dataset does not have.
    #[must_use]
    pub fn contains(&self, ordinal: u64) -> bool {
        ordinal < self.sample_count
            && self.words[in_memory(ordinal / WORD_SAMPLES)] >> (ordinal % WORD_SAMPLES) & 1 == 1
    }

    /// The `index`-th of its ordinals in ascending order, counted from 0.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    pub fn ordinal(&self, index: u64) -> u64 {
        assert!(index < self.len(), "sample {index} of a subset of {}", self.len());
        // The last block that begins at or before the index: an empty block begins where the next one does.
        let block = self.counts.partition_point(|&count| count <= index) - 1;
        let mut left = index - self.counts[block];
        let mut word = block * in_memory(BLOCK_WORDS);
        loop {
            let count = u64::from(self.words[word].count_ones());
            if left < count {
                return word as u64 * WORD_SAMPLES + nth_bit(self.words[word], left);
            }
            left -= count;
            word += 1;
        }
    }

    /// How many of its ordinals are below `ordinal`.
    #[must_use]
    pub fn count_before(&self, ordinal: u64) -> u64 {
        if ordinal >= self.sample_count {
            return self.len();
        }
        let block = ordinal / BLOCK_SAMPLES;
        let word = in_memory(ordinal / WORD_SAMPLES);
        let whole = &self.words[in_memory(block * BLOCK_WORDS)..word];
        let cut = self.words[word] & ((1 << (ordinal % WORD_SAMPLES)) - 1);
        self.counts[in_memory(block)] + ones(whole) + u64::from(cut.count_ones())
    }

    /// Its ordinals in `range`, ascending.
    pub fn ordinals_in(&self, range: Range<u64>) -> impl Iterator<Item = u64> + Clone {
        let start = range.start;
        let end = range.end.min(self.sample_count);
        let words = start / WORD_SAMPLES..end.div_ceil(WORD_SAMPLES);
        words.flat_map(move |word| {
            let first = word * WORD_SAMPLES;
            let wanted = bits_below(end, first) & !bits_below(start, first);
            bits_of(self.words[in_memory(word)] & wanted).map(move |bit| first + bit)
        })
    }

    /// The hash that distinguishes subsets: the XXH64 of the bitmap's bytes, `sample_count / 8` rounded up, least
    /// significant bit first, with `sample_count` as the seed.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl fmt::Debug for Subset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Subset")
            .field("sample_count", &self.sample_count)
            .field("len", &self.len())
            .field("hash", &format_args!("{:016x}", self.hash))
            .finish()
    }
}

/// Words of a bitmap of `sample_count` samples.
fn word_count(sample_count: u64) -> Result<usize, SubsetError> {
    if sample_count > MAX_SAMPLES {
        return Err(SubsetError::TooManySamples { sample_count });
    }
    Ok(in_memory(sample_count.div_ceil(WORD_SAMPLES)))
}

fn no_samples(sample_count: u64) -> Result<Vec<u64>, SubsetError> {
    let count = word_count(sample_count)?;
    let mut words = Vec::new();
    reserve(&mut words, count as u64)?;
    words.resize(count, 0);
    Ok(words)
}

/// The bits for ordinals below `ordinal`, in the word of samples `first..first + 64`.
fn bits_below(ordinal: u64, first: u64) -> u64 {
    match ordinal.saturating_sub(first) {
        count @ 0..WORD_SAMPLES => (1 << count) - 1,
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

fn hash_of(sample_count: u64, words: &[u64]) -> u64 {
    let mut hasher = Xxh64::new(sample_count);
    let mut left = in_memory(sample_count.div_ceil(8));
    let mut bytes = Vec::new();
    for block in words.chunks(in_memory(BLOCK_WORDS)) {
        bytes.clear();
        bytes.extend(block.iter().flat_map(|word| word.to_le_bytes()).take(left));
        left -= bytes.len();
        hasher.update(&bytes);
    }
    hasher.digest()
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
