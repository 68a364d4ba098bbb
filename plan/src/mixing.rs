//! How well an order mixes its batches, compared with a full uniform shuffle.
//!
//! Two counts measure it: from how many of 256 equal parts of the stored order the samples of a batch come, and from
//! how many classes. A window that is too small shows over many batches rather than in one, so both are also counted
//! over sixteen consecutive batches. Every number is a mean over places spread over the epoch.
//!
//! ```text
//! epoch  |----+----+----+----+----+----+----+----+----+----+----+----|   eleven places
//! place       [b]                                                        one batch
//!             [b|b|b|b|b|b|b|b|b|b|b|b|b|b|b|b]                          sixteen
//! ```
//!
//! It does not measure which samples meet *which*: only a training run shows how good an order is. order.md: MIX-1,
//! MIX-2.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use super::{Plan, in_memory};

/// Number of equal parts of the stored order.
const PART_COUNT: u64 = 256;

/// Consecutive batches that are counted together.
const BATCH_COUNT: u64 = 16;

/// Below this logarithm, the difference of a probability to 1 is lost in rounding.
const LN_LOST: f64 = -40.0;

/// How mixed the batches of a plan are, and how mixed a full uniform shuffle of the same samples would be.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixing {
    /// Number of places of the epoch that were sampled.
    pub places: NonZeroU32,
    /// In one batch.
    pub one: Distinct,
    /// In sixteen consecutive batches.
    pub sixteen: Distinct,
    /// In one batch of a full shuffle, in expectation.
    pub full_one: Distinct,
    /// In sixteen consecutive batches of a full shuffle, in expectation.
    pub full_sixteen: Distinct,
}

/// Mean number of different parts and classes among some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distinct {
    /// 256ths of the stored order.
    pub parts: f64,
    /// Classes; `None` if no classes were given.
    pub classes: Option<f64>,
}

/// The class of the sample of an ordinal, if it has one.
pub type ClassOf<'a> = dyn Fn(u64) -> Option<u64> + 'a;

impl Mixing {
    /// Default number of places of the epoch to sample: 11.
    pub const PLACES: NonZeroU32 = NonZeroU32::MIN.saturating_add(10);

    /// Samples `places` places of the plan, for batches of `batch_size` samples (of all ranks together).
    ///
    /// Calls `class_of` once for every sample, and takes memory for the number of classes and for sixteen batches.
    #[must_use]
    pub fn measure(plan: &Plan, batch_size: NonZeroU64, class_of: Option<&ClassOf<'_>>, places: NonZeroU32) -> Self {
        let sampled = SampledPlaces { plan, batch_size, class_of, places };
        let parts = if plan.extents().has_repeats() { counted_part_sizes(plan) } else { part_sizes(plan.len()) };
        let classes = class_of.map(|class_of| class_sizes(plan, class_of));
        let full = |batch_count| {
            let draws = WithoutReplacement { from: plan.len(), count: sampled.drawn(batch_count) };
            Distinct { parts: draws.distinct(&parts), classes: classes.as_ref().map(|classes| draws.distinct(classes)) }
        };
        Self {
            places,
            one: sampled.mean(1),
            sixteen: sampled.mean(BATCH_COUNT),
            full_one: full(1),
            full_sixteen: full(BATCH_COUNT),
        }
    }
}

/// The places that are sampled. order.md: MIX-1.
struct SampledPlaces<'a> {
    plan: &'a Plan,
    batch_size: NonZeroU64,
    class_of: Option<&'a ClassOf<'a>>,
    places: NonZeroU32,
}

impl SampledPlaces<'_> {
    /// Samples in `batch_count` consecutive batches.
    fn drawn(&self, batch_count: u64) -> u64 {
        self.batch_size.get().saturating_mul(batch_count).min(self.plan.len())
    }

    /// The positions sampled at place number `place`, counted from 1: whole batches, as long as there are any.
    fn positions(&self, place: u32, batch_count: u64) -> Range<u64> {
        let len = self.plan.len();
        let batch_size = self.batch_size.get();
        let drawn = self.drawn(batch_count);
        let last_batch = (len - drawn) / batch_size;
        // Batches times places may not fit in 64 bits; the quotient does.
        let batch = u128::from(place) * u128::from(len / batch_size) / (u128::from(self.places.get()) + 1);
        #[expect(clippy::cast_possible_truncation, reason = "at most `last_batch`")]
        let batch = batch.min(last_batch.into()) as u64;
        let start = batch * batch_size;
        start..start + drawn
    }

    fn mean(&self, batch_count: u64) -> Distinct {
        let mut sum = Distinct { parts: 0.0, classes: self.class_of.map(|_| 0.0) };
        for place in 1..=self.places.get() {
            let found = self.distinct(self.positions(place, batch_count));
            sum.parts += found.parts;
            sum.classes = sum.classes.zip(found.classes).map(|(sum, found)| sum + found);
        }
        let places = f64::from(self.places.get());
        Distinct { parts: sum.parts / places, classes: sum.classes.map(|sum| sum / places) }
    }

    fn distinct(&self, positions: Range<u64>) -> Distinct {
        let drawn = in_memory(positions.end - positions.start);
        let mut parts = HashSet::new();
        let mut classes = HashSet::new();
        let subset = self.plan.extents().subset();
        for ordinal in self.plan.ordinals_from(positions.start).take(drawn) {
            let stored_index = subset.map_or(ordinal, |subset| subset.count_before(ordinal));
            parts.insert(part_of(stored_index, self.plan.len()));
            classes.extend(self.class_of.and_then(|class_of| class_of(ordinal)));
        }
        Distinct {
            parts: as_number(parts.len() as u64),
            classes: self.class_of.map(|_| as_number(classes.len() as u64)),
        }
    }
}

/// Samples drawn without replacement. order.md: MIX-2.
struct WithoutReplacement {
    from: u64,
    count: u64,
}

impl WithoutReplacement {
    /// Expected number of groups that they come from.
    fn distinct(&self, groups: &GroupSizes) -> f64 {
        groups.iter().map(|(&size, &count)| as_number(count) * self.hit(size)).sum()
    }

    /// Probability that a sample of a group of `size` is drawn: 1 - C(n - size, m) / C(n, m).
    ///
    /// The quotient is a product of the smaller of both numbers of factors 1 - larger / (n - i).
    fn hit(&self, size: u64) -> f64 {
        if size > self.from - self.count {
            return 1.0;
        }
        let fewer = size.min(self.count);
        let more = size.max(self.count);
        let mut ln_missed = 0.0;
        for drawn in 0..fewer {
            ln_missed += (-as_number(more) / as_number(self.from - drawn)).ln_1p();
            if ln_missed < LN_LOST {
                return 1.0;
            }
        }
        -f64::exp_m1(ln_missed)
    }
}

/// Number of groups of each size: groups of equal size need one calculation.
type GroupSizes = BTreeMap<u64, u64>;

/// The part that the sample of a rank in the stored order is in.
fn part_of(rank: u64, sample_count: u64) -> u64 {
    // A plan has less than 2^49 samples.
    rank * PART_COUNT / sample_count
}

fn part_sizes(sample_count: u64) -> GroupSizes {
    let start = |part: u64| (part * sample_count).div_ceil(PART_COUNT);
    sizes((0..PART_COUNT).map(|part| start(part + 1) - start(part)))
}

/// Where samples are visited several times: all visits of a sample are in one part.
fn counted_part_sizes(plan: &Plan) -> GroupSizes {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let extents = plan.extents();
    for index in 0..plan.len() {
        *counts.entry(part_of(index - extents.repeat(index), plan.len())).or_default() += 1;
    }
    sizes(counts.into_values())
}

fn class_sizes(plan: &Plan, class_of: &ClassOf<'_>) -> GroupSizes {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let extents = plan.extents();
    for class in extents.ordinals(0..extents.sample_count()).filter_map(class_of) {
        *counts.entry(class).or_default() += 1;
    }
    sizes(counts.into_values())
}

fn sizes(groups: impl Iterator<Item = u64>) -> GroupSizes {
    let mut sizes = GroupSizes::new();
    for size in groups {
        *sizes.entry(size).or_default() += 1;
    }
    sizes
}

/// Counts of samples have less than 53 bits, so this is exact.
fn as_number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way to draw `count` of `sample_count`, as bits.
    fn draws(sample_count: u32, count: u32) -> impl Iterator<Item = u32> {
        (0..1_u32 << sample_count).filter(move |bits| bits.count_ones() == count)
    }

    /// MIX-2
    #[test]
    fn expectation_is_the_mean_over_all_draws() {
        let groups = [0b1_u32, 0b110, 0b1111_1000, 0b1_0000_0000];
        for count in 0..=9 {
            let hits = |draw: u32| groups.iter().filter(|&&group| group & draw != 0).count() as f64;
            let (sum, ways) = draws(9, count).fold((0.0, 0.0), |(sum, ways), draw| (sum + hits(draw), ways + 1.0));
            let group_sizes = sizes(groups.iter().map(|group| u64::from(group.count_ones())));
            let found = WithoutReplacement { from: 9, count: u64::from(count) }.distinct(&group_sizes);
            assert!((found - sum / ways).abs() < 1e-12, "{count} of 9: {found}, all draws: {}", sum / ways);
        }
    }

    /// MIX-2
    #[test]
    fn a_group_of_one_among_very_many_keeps_its_digits() {
        let draws = WithoutReplacement { from: 1 << 48, count: 256 };
        assert!((draws.hit(1) * 2_f64.powi(40) - 1.0).abs() < 1e-12);
        assert!((WithoutReplacement { from: 1 << 48, count: 1 }.hit(1 << 47) - 0.5).abs() < 1e-12);
        assert!((WithoutReplacement { from: 1 << 48, count: 1 << 40 }.hit(1 << 40) - 1.0).abs() < f64::EPSILON);
    }

    /// MIX-1
    #[test]
    fn parts_of_the_stored_order_differ_by_one_sample_at_most() {
        for sample_count in [1, 2, 255, 256, 257, 1000, 65_537] {
            let counted =
                sizes((0..PART_COUNT).map(|part| {
                    (0..sample_count).filter(|&index| part_of(index, sample_count) == part).count() as u64
                }));
            assert_eq!(part_sizes(sample_count), counted, "{sample_count} samples");
            assert!(counted.len() <= 2, "{counted:?}");
        }
    }
}
