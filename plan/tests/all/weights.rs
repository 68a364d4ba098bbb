//! Weights: the integers that they become, and the draws, compared with the definition; how often samples are drawn,
//! compared with their weights; what is refused.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test may fail")]

use grainstore_plan::{DrawKey, PlanError, Subset, Weights, WeightsError};
use proptest::prelude::*;

use crate::naive::{below, key};

const OF: DrawKey = DrawKey { seed: 7, epoch: 1, fingerprint: 5 };

/// PLN-10, with floating-point numbers: a product with a power of 2 is exact, but for numbers at the ends of the range.
/// Two products, as the power for both together can be too large for a `float64`.
fn integers(weights: &[f64]) -> Vec<u64> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let mut e = 0;
    while 2_f64.powi(e) <= largest {
        e += 1;
    }
    while largest < 2_f64.powi(e - 1) {
        e -= 1;
    }
    let c = (weights.len() as u64).ilog2() as i32 + 1;
    let one =
        |weight: f64| if weight > 0.0 { ((weight * 2_f64.powi(-e) * 2_f64.powi(63 - c)) as u64).max(1) } else { 0 };
    weights.iter().map(|&weight| one(weight)).collect()
}

/// PLN-11: the drawn indices, in the order of the draws.
fn drawn(weights: &[f64], count: u64, of: DrawKey) -> Vec<usize> {
    let integers = integers(weights);
    let total: u64 = integers.iter().sum();
    let k = key(&[key(&[of.seed, of.epoch, of.fingerprint]), 7]);
    let index_of = |mut draw: u64| {
        integers.iter().position(|&weight| draw.checked_sub(weight).map(|left| draw = left).is_none()).unwrap()
    };
    (0..count).map(|i| index_of(below(k, i, total))).collect()
}

fn visits(subset: &Subset) -> Vec<u64> {
    subset.ordinals_at(0..subset.len()).collect()
}

fn weight() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..3.0, (-40..40).prop_map(|e| 2_f64.powi(e)), Just(1e-300), Just(0.1)]
}

proptest! {
    /// PLN-10, PLN-11
    #[test]
    fn draws_are_those_of_the_definition(
        weights in prop::collection::vec(weight(), 1..200), count in 1_u64..400, seed: u64, epoch: u64, fingerprint: u64,
    ) {
        prop_assume!(weights.iter().any(|&weight| weight > 0.0));
        let of = DrawKey { seed, epoch, fingerprint };
        let mut expected: Vec<u64> = drawn(&weights, count, of).into_iter().map(|index| index as u64).collect();
        expected.sort_unstable();
        let given = Weights::new(weights.iter().copied(), count).unwrap();
        let all = weights.len() as u64;
        prop_assert_eq!(visits(&given.draw(of, all, None).unwrap()), expected.clone());
        // Drawn from a subset with repeats, index by index.
        let from: Vec<u64> = (0..all).map(|index| 10 + index / 2 * 3).collect();
        let subset = Subset::with_repeats(10 + 2 * all, from.iter().copied()).unwrap();
        let expected: Vec<u64> = expected.into_iter().map(|index| from[index as usize]).collect();
        prop_assert_eq!(visits(&given.draw(of, 10 + 2 * all, Some(&subset)).unwrap()), expected);
    }
}

/// PLN-10
#[test]
fn small_weights_become_large_integers() {
    assert_eq!(integers(&[1e-300, 1e-300]), integers(&[1e-300 * 2_f64.powi(900); 2]));
    let given = Weights::new([1e-300, 1e-300], 1).unwrap();
    let expected: Vec<u64> = drawn(&[1e-300, 1e-300], 1, OF).into_iter().map(|index| index as u64).collect();
    assert_eq!(visits(&given.draw(OF, 2, None).unwrap()), expected);
}

/// PLN-10, PLN-11
#[test]
fn draws_give_the_vector_of_the_definition() {
    let page = include_str!("../../../order.md");
    let weights = [3.0, 0.0, 0.1, 1.0];
    let given = Weights::new(weights, 8).unwrap();
    assert!(page.contains(&format!("`{:?}`", integers(&weights))), "{:?}", integers(&weights));
    assert!(page.contains(&format!("`{:?}`", drawn(&weights, 8, OF))), "{:?}", drawn(&weights, 8, OF));
    assert!(page.contains(&format!("`{:016x}`", given.hash())), "{:016x}", given.hash());
}

/// PLN-10
#[test]
fn proportions_count_and_not_the_size_of_weights() {
    let of = |factor: f64| Weights::new([1.0, 2.0, 5.5].map(|weight: f64| weight * factor), 100).unwrap();
    let drawn = |weights: &Weights| visits(&weights.draw(OF, 3, None).unwrap());
    let expected = drawn(&of(1.0));
    for factor in [2.0, 0.5, 2_f64.powi(900), 2_f64.powi(-1000)] {
        assert_eq!(drawn(&of(factor)), expected, "{factor}");
        assert_eq!(of(factor).hash(), of(1.0).hash());
    }
    // Numbers without a leading bit keep their proportions.
    let tiny = f64::from_bits(1);
    assert_eq!(drawn(&Weights::new([2.0 * tiny, 4.0 * tiny, 11.0 * tiny], 100).unwrap()), expected);
}

/// PLN-11: chi-squared over the draws of several epochs; the bound is exceeded by chance once in 10,000 keys.
#[test]
fn samples_are_drawn_as_often_as_their_weights_say() {
    let weights = [1.0, 2.0, 3.0, 10.0, 0.5, 0.0, 7.25, 1.0, 20.0];
    let total: f64 = weights.iter().sum();
    let (epochs, draws) = (40, 5000);
    let given = Weights::new(weights, draws).unwrap();
    let mut counts = [0_u64; 9];
    for epoch in 0..epochs {
        let drawn = visits(&given.draw(DrawKey { epoch, ..OF }, 9, None).unwrap());
        assert_eq!(drawn.len() as u64, draws);
        drawn.iter().for_each(|&ordinal| counts[ordinal as usize] += 1);
    }
    assert_eq!(counts[5], 0);
    let all = (epochs * draws) as f64;
    let terms = counts.iter().zip(weights).filter(|&(_, weight)| weight > 0.0).map(|(&count, weight)| {
        let expected = all * weight / total;
        (count as f64 - expected).powi(2) / expected
    });
    let chi_squared: f64 = terms.sum();
    assert!(chi_squared < 29.88, "chi-squared of 7 degrees of freedom: {chi_squared}, {counts:?}");
}

#[test]
fn another_seed_epoch_or_dataset_draws_others() {
    let given = Weights::new([1.0; 50], 50).unwrap();
    let drawn = |of| visits(&given.draw(of, 50, None).unwrap());
    let base = drawn(OF);
    for of in [DrawKey { seed: 8, ..OF }, DrawKey { epoch: 2, ..OF }, DrawKey { fingerprint: 6, ..OF }] {
        assert_ne!(drawn(of), base, "{of:?}");
    }
    assert_eq!(drawn(OF), base, "drawn again");
}

#[test]
fn more_draws_than_are_held_at_a_time_are_those_of_the_definition() {
    // Two passes over the draws.
    let count = 9_000_000;
    let weights = Weights::new([1.0, 5.0, 2.0], count).unwrap();
    let subset = weights.draw(OF, 3, None).unwrap();
    let (total, k) = (8_u64 << 58, key(&[key(&[7, 1, 5]), 7]));
    assert_eq!(integers(&[1.0, 5.0, 2.0]), [1 << 58, 5 << 58, 2 << 58]);
    let mut counts = [0; 3];
    (0..count).for_each(|i| {
        counts[match below(k, i, total) >> 58 {
            0 => 0,
            1..6 => 1,
            _ => 2,
        }] += 1
    });
    assert_eq!([subset.count_before(1), subset.count_before(2)], [counts[0], counts[0] + counts[1]]);
    assert_eq!(subset.len(), count);
}

#[test]
fn weights_that_say_nothing_are_refused() {
    let refused = |weights: &[f64], count| Weights::new(weights.iter().copied(), count).unwrap_err().to_string();
    assert_eq!(refused(&[1.0, f64::NAN], 1), "weight 1 is NaN, expected a finite number of 0 or more");
    assert_eq!(refused(&[-0.5], 1), "weight 0 is -0.5, expected a finite number of 0 or more");
    assert_eq!(refused(&[1.0, 2.0, f64::INFINITY], 1), "weight 2 is inf, expected a finite number of 0 or more");
    assert_eq!(refused(&[0.0, -0.0], 1), "all 2 weights are 0, expected one above 0");
    assert!(matches!(Weights::new([], 1), Err(WeightsError::AllZero { count: 0 })));
    assert_eq!(refused(&[1.0], 0), "0 samples are to be drawn, expected 1 to 1099511627776");
    assert!(matches!(Weights::new([1.0], u64::MAX), Err(WeightsError::DrawCount { count: u64::MAX })));
    let three = Weights::new([1.0; 3], 1).unwrap();
    assert_eq!(three.draw(OF, 4, None).unwrap_err(), PlanError::WeightsOfOther { expected: 4, found: 3 });
    let two = Subset::from_range(4, 0..2).unwrap();
    let error = three.draw(OF, 4, Some(&two)).unwrap_err();
    assert_eq!(error.to_string(), "3 weights, expected 2: one for each sample");
}
