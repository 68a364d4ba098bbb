//! A subset: which samples of a dataset an epoch visits, and how often each.
//!
//! One bit a sample says whether the subset has it. Its visits are numbered by *index*, ascending by ordinal, so those
//! of a sample follow each other; where a sample is visited more than once, one more bit a visit says whether it is the
//! first of its sample. A subset without repeats has no such bits: then each index is a sample.
//!
//! ```text
//! samples   0 1 2 3 4 5        sample 1 once, sample 3 three times, sample 4 once
//! has       0 1 0 1 1 0
//! index       0   1 2 3 4
//! first       1   1 0 0 1
//! ordinal     1   3 3 3 4
//! repeat      0   0 1 2 0
//! ```
//! order.md: PLN-9, SUB-1.

use std::fmt;
use std::ops::Range;

use grainstore_format::MAX_SAMPLES;
use grainstore_format::memory::{NoMemory, push, reserve};
use xxhash_rust::xxh64::Xxh64;

use super::bits::{Bits, WORD_BITS, bits_below};
use super::in_memory;

/// Some of the samples of a dataset: all, none or any of them, each once or several times.
///
/// ```
/// use grainstore_plan::Subset;
///
/// let subset = Subset::from_ordinals(10, [7, 2, 3])?;
/// assert_eq!((subset.len(), subset.ordinal(2), subset.count_before(7)), (3, 7, 2));
/// assert_eq!(subset.ordinals_in(3..8).collect::<Vec<_>>(), [3, 7]);
///
/// let oversampled = Subset::with_repeats(10, [2, 2, 7, 2])?;
/// assert_eq!(oversampled.ordinals_at(0..4).collect::<Vec<_>>(), [2, 2, 2, 7]);
/// assert_eq!((oversampled.repeat(2), oversampled.repeat(3)), (2, 0));
/// # Ok::<(), grainstore_plan::SubsetError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Subset {
    /// A bit for each sample of the dataset.
    samples: Bits,
    /// A bit for each visit: whether it is the first of its sample. `None` where all are.
    firsts: Option<Bits>,
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
    /// More visits than can be numbered.
    #[error("subset has {visit_count} samples, repeats counted, at most {MAX_SAMPLES} can be numbered")]
    TooManyVisits {
        /// The number of visits.
        visit_count: u64,
    },
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
            words[in_memory(ordinal / WORD_BITS)] |= 1 << (ordinal % WORD_BITS);
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

    /// The samples of `ordinals`, given in any order, each as often as it is there.
    ///
    /// Takes 8 bytes an ordinal while it is made, and a bit for each sample and each visit afterwards.
    ///
    /// # Errors
    /// If an ordinal is not below `sample_count`.
    pub fn with_repeats(sample_count: u64, ordinals: impl IntoIterator<Item = u64>) -> Result<Self, SubsetError> {
        let given = ordinals.into_iter();
        let mut ordinals = Vec::new();
        reserve(&mut ordinals, given.size_hint().0 as u64)?;
        for ordinal in given {
            if ordinal >= sample_count {
                return Err(SubsetError::OrdinalOutOfRange { ordinal, sample_count });
            }
            push(&mut ordinals, ordinal)?;
        }
        ordinals.sort_unstable();
        let mut builder = VisitsBuilder::new(sample_count, ordinals.len() as u64)?;
        ordinals.into_iter().for_each(|ordinal| builder.push(ordinal));
        Ok(builder.finish())
    }

    fn of(sample_count: u64, words: Vec<u64>) -> Self {
        Self::new(Bits::new(sample_count, words), None)
    }

    fn new(samples: Bits, firsts: Option<Bits>) -> Self {
        let hash = hash_of(&samples, firsts.as_ref());
        Self { samples, firsts, hash }
    }

    /// Samples of the dataset, wanted or not.
    #[must_use]
    pub fn sample_count(&self) -> u64 {
        self.samples.len()
    }

    /// Visits: the samples of the subset, one that it has several times counted as often.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.firsts.as_ref().map_or_else(|| self.samples.count(), Bits::len)
    }

    /// Whether the subset has no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has a sample several times.
    #[must_use]
    pub fn has_repeats(&self) -> bool {
        self.firsts.is_some()
    }

    /// Whether sample `ordinal` is in it; false for one that the dataset does not have.
    #[must_use]
    pub fn contains(&self, ordinal: u64) -> bool {
        self.samples.get(ordinal)
    }

    /// The ordinal of a visit: the `index`-th of its ordinals in ascending order, counted from 0.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    pub fn ordinal(&self, index: u64) -> u64 {
        assert!(index < self.len(), "sample {index} of a subset of {}", self.len());
        match &self.firsts {
            None => self.samples.nth(index),
            Some(firsts) => self.samples.nth(firsts.count_before(index + 1) - 1),
        }
    }

    /// How many visits of the same sample have a smaller index: 0 for all visits of a subset without repeats.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    pub fn repeat(&self, index: u64) -> u64 {
        assert!(index < self.len(), "sample {index} of a subset of {}", self.len());
        self.firsts.as_ref().map_or(0, |firsts| index - firsts.last_at(index))
    }

    /// How many visits are of samples below `ordinal`.
    #[must_use]
    pub fn count_before(&self, ordinal: u64) -> u64 {
        let count = self.samples.count_before(ordinal);
        match &self.firsts {
            None => count,
            Some(firsts) if count == self.samples.count() => firsts.len(),
            Some(firsts) => firsts.nth(count),
        }
    }

    /// Its ordinals in `range`, ascending, each once.
    pub fn ordinals_in(&self, range: Range<u64>) -> impl Iterator<Item = u64> + Clone {
        self.samples.ones_in(range)
    }

    /// The ordinals of consecutive visits, ascending: much faster than one by one.
    pub fn ordinals_at(&self, indices: Range<u64>) -> impl Iterator<Item = u64> {
        let indices = indices.start..indices.end.min(self.len());
        let first = if indices.is_empty() { self.sample_count() } else { self.ordinal(indices.start) };
        let mut samples = self.ordinals_in(first..self.sample_count());
        let mut ordinal = first;
        let repeated = self.firsts.as_ref().map(|firsts| {
            let start = indices.start;
            samples.next();
            let mut samples = samples.clone();
            indices.clone().map_while(move |index| {
                if index > start && firsts.get(index) {
                    ordinal = samples.next()?;
                }
                Some(ordinal)
            })
        });
        let count = if repeated.is_some() { 0 } else { in_memory(indices.end.saturating_sub(indices.start)) };
        repeated.into_iter().flatten().chain(samples.take(count))
    }

    /// The hash that distinguishes subsets: the XXH64 of the bitmap's bytes, `sample_count / 8` rounded up, least
    /// significant bit first, with `sample_count` as the seed. With repeats, 8 bytes of the number of visits follow, and
    /// the bitmap of the visits that are the first of their sample.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// Makes a subset of its visits, which come in ascending order.
pub(super) struct VisitsBuilder {
    sample_count: u64,
    samples: Vec<u64>,
    firsts: Vec<u64>,
    visit_count: u64,
    visit_count_max: u64,
    last: Option<u64>,
    has_repeats: bool,
}

impl VisitsBuilder {
    /// For at most `visit_count_max` visits.
    pub(super) fn new(sample_count: u64, visit_count_max: u64) -> Result<Self, SubsetError> {
        let samples = no_samples(sample_count)?;
        if visit_count_max > MAX_SAMPLES {
            return Err(SubsetError::TooManyVisits { visit_count: visit_count_max });
        }
        let firsts = zero_words(in_memory(visit_count_max.div_ceil(WORD_BITS)))?;
        Ok(Self { sample_count, samples, firsts, visit_count: 0, visit_count_max, last: None, has_repeats: false })
    }

    /// Adds a visit of a sample that the dataset has: of the last sample again, or of one after it.
    #[inline]
    pub(super) fn push(&mut self, ordinal: u64) {
        debug_assert!(self.last.is_none_or(|last| last <= ordinal), "visits ascend");
        debug_assert!(ordinal < self.sample_count && self.visit_count < self.visit_count_max, "visit of {ordinal}");
        if self.last == Some(ordinal) {
            self.has_repeats = true;
        } else {
            self.samples[in_memory(ordinal / WORD_BITS)] |= 1 << (ordinal % WORD_BITS);
            self.firsts[in_memory(self.visit_count / WORD_BITS)] |= 1 << (self.visit_count % WORD_BITS);
            self.last = Some(ordinal);
        }
        self.visit_count += 1;
    }

    pub(super) fn finish(mut self) -> Subset {
        self.firsts.truncate(in_memory(self.visit_count.div_ceil(WORD_BITS)));
        let firsts = self.has_repeats.then(|| Bits::new(self.visit_count, self.firsts));
        Subset::new(Bits::new(self.sample_count, self.samples), firsts)
    }
}

impl fmt::Debug for Subset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Subset")
            .field("sample_count", &self.sample_count())
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
    Ok(in_memory(sample_count.div_ceil(WORD_BITS)))
}

fn no_samples(sample_count: u64) -> Result<Vec<u64>, SubsetError> {
    Ok(zero_words(word_count(sample_count)?)?)
}

fn zero_words(count: usize) -> Result<Vec<u64>, NoMemory> {
    let mut words = Vec::new();
    reserve(&mut words, count as u64)?;
    words.resize(count, 0);
    Ok(words)
}

fn hash_of(samples: &Bits, firsts: Option<&Bits>) -> u64 {
    let mut hasher = Xxh64::new(samples.len());
    samples.hash_into(&mut hasher);
    if let Some(firsts) = firsts {
        hasher.update(&firsts.len().to_le_bytes());
        firsts.hash_into(&mut hasher);
    }
    hasher.digest()
}
