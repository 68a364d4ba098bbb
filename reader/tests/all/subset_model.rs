//! Compares subsets with a `BTreeSet` of ordinals, for every constructor and every query.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test may fail")]

use std::collections::BTreeSet;

use grainstore_reader::{Subset, SubsetError};
use proptest::prelude::*;
use xxhash_rust::xxh64::xxh64;

/// The wanted ordinals of 1 to 10,000 samples: dense, sparse, or in clumps with empty blocks between them.
fn wanted() -> impl Strategy<Value = (u64, BTreeSet<u64>)> {
    let shape = prop_oneof![Just(1_u64), Just(2), Just(50), Just(3000)];
    (1_u64..10_000, shape, any::<u64>(), any::<bool>()).prop_map(|(sample_count, one_in, seed, clumps)| {
        let draw = |ordinal: u64| xxh64(&(if clumps { ordinal / 700 } else { ordinal }).to_le_bytes(), seed);
        (sample_count, (0..sample_count).filter(|&ordinal| draw(ordinal).is_multiple_of(one_in)).collect())
    })
}

/// The bitmap as bytes, made one sample at a time.
fn bytes_of(sample_count: u64, wanted: &BTreeSet<u64>) -> Vec<u8> {
    let mut bytes = vec![0; sample_count.div_ceil(8) as usize];
    wanted.iter().for_each(|ordinal| bytes[(ordinal / 8) as usize] |= 1 << (ordinal % 8));
    bytes
}

proptest! {
    #[test]
    fn a_subset_answers_as_a_set_of_its_ordinals((sample_count, wanted) in wanted()) {
        let subset = Subset::from_ordinals(sample_count, wanted.iter().rev().chain(&wanted).copied()).unwrap();
        prop_assert_eq!((subset.sample_count(), subset.len()), (sample_count, wanted.len() as u64));
        prop_assert_eq!(subset.is_empty(), wanted.is_empty());
        for (index, &ordinal) in (0..).zip(&wanted) {
            prop_assert_eq!(subset.ordinal(index), ordinal);
        }
        let mut before = 0;
        for ordinal in 0..sample_count + 130 {
            prop_assert_eq!(subset.count_before(ordinal), before);
            prop_assert_eq!(subset.contains(ordinal), wanted.contains(&ordinal));
            before += u64::from(wanted.contains(&ordinal));
        }
        prop_assert_eq!((subset.count_before(u64::MAX), subset.contains(u64::MAX)), (before, false));
        prop_assert_eq!(subset.hash(), xxh64(&bytes_of(sample_count, &wanted), sample_count));
    }

    #[test]
    fn the_ordinals_in_a_range_are_those_of_the_set((sample_count, wanted) in wanted(), a in 0_u64..10_100, b in 0_u64..10_100) {
        let subset = Subset::from_ordinals(sample_count, wanted.iter().copied()).unwrap();
        let (start, end) = (a.min(b), a.max(b));
        prop_assert!(subset.ordinals_in(start..end).eq(wanted.range(start..end).copied()));
        prop_assert_eq!(subset.ordinals_in(end + 1..start).next(), None, "a range from behind is empty");
        prop_assert!(subset.ordinals_in(0..u64::MAX).eq(wanted.iter().copied()));
    }

    #[test]
    fn ranges_and_words_make_the_same_subset_as_ordinals(sample_count in 1_u64..9000, a in 0_u64..9000, b in 0_u64..9000, junk: u64) {
        let (start, end) = (a.min(b).min(sample_count), a.max(b).min(sample_count));
        let expected = Subset::from_ordinals(sample_count, start..end).unwrap();
        prop_assert_eq!(&Subset::from_range(sample_count, start..end).unwrap(), &expected);
        let mut words = vec![0; sample_count.div_ceil(64) as usize];
        (start..end).for_each(|ordinal| words[(ordinal / 64) as usize] |= 1 << (ordinal % 64));
        if !sample_count.is_multiple_of(64) {
            // Bits past the last sample are ignored.
            *words.last_mut().unwrap() |= junk << (sample_count % 64);
        }
        prop_assert_eq!(&Subset::from_words(sample_count, words).unwrap(), &expected);
    }
}

/// How often each of 1 to 5,000 samples is visited: mostly never, mostly once, or very often.
fn visits() -> impl Strategy<Value = (u64, Vec<u64>)> {
    let most = prop_oneof![Just(2_u64), Just(3), Just(40), Just(3000)];
    (1_u64..5000, 1_u64..40, most, any::<u64>()).prop_map(|(sample_count, one_in, most, seed)| {
        let draw = |ordinal: u64, number: u64| xxh64(&(2 * ordinal + number).to_le_bytes(), seed);
        let wanted = (0..sample_count).filter(|&ordinal| draw(ordinal, 0).is_multiple_of(one_in));
        let visits = wanted.flat_map(|ordinal| {
            let count = if draw(ordinal, 1) % 64 == 0 { most } else { draw(ordinal, 1) % most.min(4) };
            std::iter::repeat_n(ordinal, count as usize)
        });
        (sample_count, visits.collect())
    })
}

proptest! {
    /// PLN-9, SUB-1
    #[test]
    fn a_subset_with_repeats_answers_as_a_sorted_list((sample_count, visits) in visits(), a in 0_u64..9000, b in 0_u64..9000) {
        let shuffled = visits.iter().rev().skip(7).chain(visits.iter().rev().take(7)).copied();
        let subset = Subset::with_repeats(sample_count, shuffled).unwrap();
        prop_assert_eq!((subset.sample_count(), subset.len()), (sample_count, visits.len() as u64));
        let distinct: BTreeSet<u64> = visits.iter().copied().collect();
        prop_assert_eq!(subset.has_repeats(), distinct.len() < visits.len());
        let firsts: Vec<u64> = (0..visits.len()).filter(|&i| i == 0 || visits[i] != visits[i - 1]).map(|i| i as u64).collect();
        for (index, &ordinal) in (0..).zip(&visits) {
            prop_assert_eq!(subset.ordinal(index), ordinal);
            let first = visits.partition_point(|&other| other < ordinal) as u64;
            prop_assert_eq!(subset.repeat(index), index - first);
        }
        for ordinal in 0..sample_count + 130 {
            prop_assert_eq!(subset.count_before(ordinal), visits.partition_point(|&other| other < ordinal) as u64);
            prop_assert_eq!(subset.contains(ordinal), distinct.contains(&ordinal));
        }
        prop_assert!(subset.ordinals_in(0..u64::MAX).eq(distinct.iter().copied()));
        let (start, end) = (a.min(b), a.max(b));
        let some = visits.iter().copied().skip(start as usize).take((end - start) as usize);
        prop_assert!(subset.ordinals_at(start..end).eq(some));
        let bitmap = bytes_of(sample_count, &distinct);
        let mut hashed = bitmap.clone();
        if subset.has_repeats() {
            hashed.extend((visits.len() as u64).to_le_bytes());
            hashed.extend(bytes_of(visits.len() as u64, &firsts.into_iter().collect()));
        } else {
            prop_assert_eq!(&subset, &Subset::from_ordinals(sample_count, visits.iter().copied()).unwrap());
        }
        prop_assert_eq!(subset.hash(), xxh64(&hashed, sample_count));
    }
}

#[test]
fn repeats_that_differ_only_in_their_number_have_other_hashes() {
    let of = |count| Subset::with_repeats(10, std::iter::repeat_n(3, count)).unwrap();
    let hashes: BTreeSet<u64> = (1..40).map(|count| of(count).hash()).collect();
    assert_eq!(hashes.len(), 39);
    let page = include_str!("../../../order.md");
    let vector = Subset::with_repeats(10, [7, 3, 2, 3, 3]).unwrap().hash();
    assert!(page.contains(&format!("`{vector:016x}`")), "{vector:016x}");
    let error = Subset::with_repeats(10, [3, 10]).unwrap_err();
    assert_eq!(error, SubsetError::OrdinalOutOfRange { ordinal: 10, sample_count: 10 });
}

#[test]
fn samples_that_the_dataset_does_not_have_are_refused() {
    let error = Subset::from_ordinals(10, [3, 10, 11]).unwrap_err();
    assert_eq!(error, SubsetError::OrdinalOutOfRange { ordinal: 10, sample_count: 10 });
    assert_eq!(error.to_string(), "subset has ordinal 10, the dataset has 10 samples");
    let error = Subset::from_range(10, 3..11).unwrap_err();
    assert_eq!(error.to_string(), "subset has ordinals 3..11, the dataset has 10 samples");
    let error = Subset::from_words(65, vec![0]).unwrap_err();
    assert_eq!(error.to_string(), "subset is a bitmap of 1 words, 65 samples need 2");
    assert!(Subset::from_words(64, vec![0; 2]).is_err());
    let error = Subset::from_range(u64::MAX, 0..0).unwrap_err();
    assert_eq!(error.to_string(), "subset is of 18446744073709551615 samples, at most 1099511627776 can be numbered");
}

#[test]
fn a_subset_may_hold_no_sample() {
    for subset in [Subset::from_range(0, 0..0), Subset::from_range(5, 2..2), Subset::from_ordinals(5, [])] {
        let subset = subset.unwrap();
        assert_eq!((subset.len(), subset.is_empty(), subset.ordinals_in(0..9).count()), (0, true, 0));
    }
}

#[test]
#[should_panic(expected = "sample 3 of a subset of 3")]
fn an_ordinal_past_the_last_panics() {
    let _ = Subset::from_range(5, 2..5).unwrap().ordinal(3);
}

#[test]
fn subsets_of_datasets_of_different_lengths_differ() {
    let [five, six] = [5, 6].map(|sample_count| Subset::from_range(sample_count, 0..3).unwrap());
    assert_ne!(five, six);
    assert_ne!(five.hash(), six.hash());
    assert_eq!(format!("{five:?}"), format!("Subset {{ sample_count: 5, len: 3, hash: {:016x} }}", five.hash()));
}
