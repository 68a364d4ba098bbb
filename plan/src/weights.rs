//! Weights: a subset that is drawn for each epoch, with replacement.
//!
//! A sample is drawn as often as its share of all weights says, on average. Weights become integers once, and a draw is
//! an integer below their sum: nothing depends on how a machine rounds, and draw i needs none of the draws before it.
//!
//! ```text
//! weights         3   0   1       1
//! integers      |-----|---|-------|---|         the draws are below their sum W
//! draws, sorted   x x       x       x x          one pass over both gives the visits, ascending
//! ```
//! order.md: PLN-10, PLN-11.

use std::fmt;
use std::sync::{Arc, Mutex};

use grainstore_format::MAX_SAMPLES;
use grainstore_format::memory::{NoMemory, push, reserve};
use xxhash_rust::xxh64::Xxh64;

use super::PlanError;
use super::draws::{Draws, key};
use super::subset::{Subset, VisitsBuilder};

/// The stream of the draws: `key(K, 7)`.
const DRAW_STREAM: u64 = 7;

/// Draws that are held at a time, 8 bytes each, or a sixteenth of all if that is more.
const HELD_DRAWS: u64 = 1 << 23;

/// How often all draws are made at most, to hold only some of them at a time.
const PASSES_MAX: u64 = 16;

/// The bits of the fraction of a `float64`.
const FRACTION_BITS: u32 = 52;

/// How likely each sample is to be drawn, and how many are drawn for an epoch.
///
/// ```
/// use grainstore_plan::{DrawKey, Weights};
///
/// let weights = Weights::new([1.0, 0.0, 3.0], 8)?;
/// let drawn = weights.draw(DrawKey { seed: 7, epoch: 1, fingerprint: 5 }, 3, None)?;
/// assert_eq!((drawn.len(), drawn.contains(1)), (8, false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Weights {
    /// By index: in proportion to the weights given. Their sum is below 2^63.
    integers: Vec<u64>,
    total: u64,
    draw_count: u64,
    hash: u64,
    last: Mutex<Option<LastDraw>>,
}

/// The draw that was made last: an epoch is usually planned several times.
struct LastDraw {
    of: DrawKey,
    from_hash: Option<u64>,
    drawn: Arc<Subset>,
}

/// What the draws depend on besides the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawKey {
    /// The caller's seed.
    pub seed: u64,
    /// The epoch's number.
    pub epoch: u64,
    /// The dataset's fingerprint.
    pub fingerprint: u64,
}

/// Why weights cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// A weight is negative, infinite or NaN.
    #[error("weight {index} is {value}, expected a finite number of 0 or more")]
    Invalid {
        /// The index of the first such weight.
        index: u64,
        /// The weight.
        value: f64,
    },
    /// No sample can be drawn.
    #[error("all {count} weights are 0, expected one above 0")]
    AllZero {
        /// Number of weights.
        count: u64,
    },
    /// Nothing, or too much, is to be drawn.
    #[error("{count} samples are to be drawn, expected 1 to {MAX_SAMPLES}")]
    DrawCount {
        /// The number given.
        count: u64,
    },
    /// More weights than a dataset can have samples.
    #[error("{count} weights, expected at most {MAX_SAMPLES}")]
    TooMany {
        /// The number given.
        count: u64,
    },
    /// The system has no memory for the weights.
    #[error("weights of samples: {0}")]
    NoMemory(#[from] NoMemory),
}

impl Weights {
    /// Weights of samples, by index: by ordinal, or where the epoch is over a subset, by the index of the visit. An
    /// epoch draws `draw_count` of them.
    ///
    /// # Errors
    /// If a weight is negative or not finite, if all are 0, or if there is nothing to draw.
    pub fn new(weights: impl IntoIterator<Item = f64>, draw_count: u64) -> Result<Self, WeightsError> {
        if !(1..=MAX_SAMPLES).contains(&draw_count) {
            return Err(WeightsError::DrawCount { count: draw_count });
        }
        let given = weights.into_iter();
        let mut bits = Vec::new();
        reserve(&mut bits, given.size_hint().0 as u64)?;
        let mut largest: f64 = 0.0;
        for (index, value) in (0..).zip(given) {
            if !(value.is_finite() && value >= 0.0) {
                return Err(WeightsError::Invalid { index, value });
            }
            largest = largest.max(value);
            push(&mut bits, value.to_bits())?;
        }
        let count = bits.len() as u64;
        if count > MAX_SAMPLES {
            return Err(WeightsError::TooMany { count });
        }
        if largest == 0.0 {
            return Err(WeightsError::AllZero { count });
        }
        let scale = Scale::of(count, largest);
        let mut integers = bits;
        let mut total = 0;
        for number in &mut integers {
            *number = scale.integer(*number);
            total += *number;
        }
        let hash = hash_of(&integers, draw_count);
        Ok(Self { integers, total, draw_count, hash, last: Mutex::new(None) })
    }

    /// Number of weights.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "weights are never empty")]
    pub fn len(&self) -> u64 {
        self.integers.len() as u64
    }

    /// Number of samples that an epoch draws.
    #[must_use]
    pub fn draw_count(&self) -> u64 {
        self.draw_count
    }

    /// The hash that distinguishes weights: the XXH64 of the integers, 8 bytes each, little-endian, with the number of
    /// samples that are drawn as the seed.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The subset that an epoch of `of` visits: drawn from all samples of a dataset of `sample_count`, or from those of
    /// a subset of them.
    ///
    /// Takes time for each weight and each draw, and memory for the subset and for at least a sixteenth of the draws.
    ///
    /// # Errors
    /// [`PlanError::WeightsOfOther`] if there are not as many weights as samples, and if there is no memory.
    pub fn draw(&self, of: DrawKey, sample_count: u64, from: Option<&Subset>) -> Result<Arc<Subset>, PlanError> {
        let expected = from.map_or(sample_count, Subset::len);
        if self.len() != expected {
            return Err(PlanError::WeightsOfOther { expected, found: self.len() });
        }
        if let Some(subset) = from.filter(|subset| subset.sample_count() != sample_count) {
            return Err(PlanError::SubsetOfOther { expected: sample_count, found: subset.sample_count() });
        }
        let from_hash = from.map(Subset::hash);
        // Not `lock`: another thread may have been in it when this process was forked.
        if let Ok(last) = self.last.try_lock()
            && let Some(last) = &*last
            && (last.of, last.from_hash, last.drawn.sample_count()) == (of, from_hash, sample_count)
        {
            return Ok(Arc::clone(&last.drawn));
        }
        let mut visits = VisitsBuilder::new(sample_count, self.draw_count)?;
        match from {
            None => self.draw_from(0..sample_count, of, &mut visits)?,
            Some(subset) => self.draw_from(subset.ordinals_at(0..subset.len()), of, &mut visits)?,
        }
        let drawn = Arc::new(visits.finish());
        if let Ok(mut last) = self.last.try_lock() {
            *last = Some(LastDraw { of, from_hash, drawn: Arc::clone(&drawn) });
        }
        Ok(drawn)
    }

    fn draw_from(
        &self,
        ordinals: impl Iterator<Item = u64>,
        of: DrawKey,
        visits: &mut VisitsBuilder,
    ) -> Result<(), NoMemory> {
        let epoch_key = key(&[of.seed, of.epoch, of.fingerprint]);
        let draws = Draws::new(key(&[epoch_key, DRAW_STREAM]));
        let mut weighted = self.integers.iter().zip(ordinals);
        let mut ordinal = 0;
        // The draws below `end` are of the samples so far.
        let mut end = 0;
        let mut held = Vec::new();
        let pass_count = self.draw_count.div_ceil(HELD_DRAWS).min(PASSES_MAX);
        for pass in 0..pass_count {
            self.sorted_draws(draws, pass..pass_count, &mut held)?;
            for &draw in &held {
                while draw >= end {
                    let Some((weight, next)) = weighted.next() else { break };
                    end += weight;
                    ordinal = next;
                }
                visits.push(ordinal);
            }
        }
        Ok(())
    }

    /// Replaces `held` by the draws of one of several equal parts of the numbers below the sum, ascending.
    fn sorted_draws(&self, draws: Draws, pass: std::ops::Range<u64>, held: &mut Vec<u64>) -> Result<(), NoMemory> {
        let (number, count) = (pass.start, pass.end);
        let bound = |number: u64| {
            #[expect(clippy::cast_possible_truncation, reason = "at most the sum, since `number` is at most `count`")]
            let bound = (u128::from(self.total) * u128::from(number) / u128::from(count)) as u64;
            bound
        };
        let part = bound(number)..bound(number + 1);
        held.clear();
        if count == 1 {
            reserve(held, self.draw_count)?;
        }
        for draw in 0..self.draw_count {
            let drawn = draws.below(draw, self.total);
            if part.contains(&drawn) {
                push(held, drawn)?;
            }
        }
        held.sort_unstable();
        Ok(())
    }
}

impl PartialEq for Weights {
    fn eq(&self, other: &Self) -> bool {
        self.draw_count == other.draw_count && self.integers == other.integers
    }
}

impl Eq for Weights {}

impl fmt::Debug for Weights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Weights")
            .field("len", &self.len())
            .field("draw_count", &self.draw_count)
            .field("hash", &format_args!("{:016x}", self.hash))
            .finish()
    }
}

/// How weights become integers: times a power of 2, so that the largest has 63 bits less those of their count.
#[derive(Clone, Copy)]
struct Scale {
    exponent: i32,
}

impl Scale {
    /// For `count` weights of which `largest`, above 0, is the largest.
    fn of(count: u64, largest: f64) -> Self {
        let Float { fraction, exponent } = Float::of(largest.to_bits());
        let bits = 63 - bit_len(count).cast_signed();
        Self { exponent: bits - (exponent + bit_len(fraction).cast_signed()) }
    }

    /// The integer of the weight with these bits: rounded down, but at least 1 if the weight is above 0.
    fn integer(self, bits: u64) -> u64 {
        let Float { fraction, exponent } = Float::of(bits);
        if fraction == 0 {
            return 0;
        }
        let shift = exponent + self.exponent;
        let scaled = match shift.unsigned_abs() {
            // The largest weight has less than 63 bits, and no other has more.
            left if shift >= 0 => fraction << left,
            right => fraction.checked_shr(right).unwrap_or(0),
        };
        scaled.max(1)
    }
}

/// A `float64` of 0 or more: `fraction * 2^exponent`.
struct Float {
    fraction: u64,
    exponent: i32,
}

impl Float {
    fn of(bits: u64) -> Self {
        const ONE: u64 = 1 << FRACTION_BITS;
        let fraction = bits & (ONE - 1);
        // -0.0 is 0.
        match (bits >> FRACTION_BITS & 0x7FF) as i32 {
            0 => Self { fraction, exponent: -1074 },
            biased => Self { fraction: fraction | ONE, exponent: biased - 1075 },
        }
    }
}

/// The bits of a number without leading zeros.
fn bit_len(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

fn hash_of(integers: &[u64], draw_count: u64) -> u64 {
    const HASHED_AT_A_TIME: usize = 512;
    let mut hasher = Xxh64::new(draw_count);
    let mut bytes = Vec::with_capacity(HASHED_AT_A_TIME * size_of::<u64>());
    for some in integers.chunks(HASHED_AT_A_TIME) {
        bytes.clear();
        bytes.extend(some.iter().flat_map(|number| number.to_le_bytes()));
        hasher.update(&bytes);
    }
    hasher.digest()
}
