//! The chunked order in groups of extents: compared with its definition for random datasets, members and subsets, and with
//! the vectors of order.md.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::NonZeroU32;
use std::sync::Arc;

use grainstore_plan::{Extents, ExtentsBuilder, Order, Plan, PlanSpec, Subset};
use proptest::prelude::*;

use crate::naive;

const CHUNK_SIZE: u64 = 4096;

/// The (sample count, last stored length) of every chunk of a member.
type Chunks = Vec<(u64, u64)>;

fn extents(members: &[Chunks]) -> Extents {
    let mut builder = ExtentsBuilder::new(CHUNK_SIZE);
    for chunks in members {
        builder.start_member(CHUNK_SIZE);
        for &(sample_count, last_stored_len) in chunks {
            builder.chunk(sample_count, last_stored_len).unwrap();
        }
    }
    builder.finish()
}

/// One member with extents of these sizes.
fn of_sizes(sizes: &[u64]) -> Extents {
    extents(&[sizes.iter().map(|&size| (size, 1)).collect()])
}

fn epoch(extents: Extents, seed: u64, lanes: u64, group: u32) -> Vec<u64> {
    let plan = Plan::new(PlanSpec {
        extents: Arc::new(extents),
        seed,
        epoch: 1,
        fingerprint: 5,
        order: Order::Chunked,
        lanes,
        group: NonZeroU32::new(group).unwrap(),
    })
    .unwrap();
    let ordinals: Vec<u64> = (0..plan.len()).map(|position| plan.at(position)).collect();
    assert!(plan.ordinals_from(0).eq(ordinals.iter().copied()));
    ordinals
}

/// The first ordinals of the extents of all members, and the number of extents of each.
fn naive_extents(members: &[Chunks]) -> (Vec<u64>, Vec<usize>) {
    let mut first = vec![0];
    let mut counts = Vec::new();
    for chunks in members {
        let own = naive::first(chunks, CHUNK_SIZE);
        let start = *first.last().unwrap();
        counts.push(own.len() - 1);
        first.extend(own[1..].iter().map(|ordinal| start + ordinal));
    }
    (first, counts)
}

fn chunks() -> impl Strategy<Value = Chunks> {
    let sample_count = prop_oneof![2 => Just(0), 5 => 1..4u64, 3 => 1..20u64];
    let last_stored_len = prop_oneof![4 => Just(100), 1 => Just(8 * CHUNK_SIZE)];
    prop::collection::vec((sample_count, last_stored_len), 1..20)
        .prop_filter("a dataset with samples", |chunks| chunks.iter().any(|&(count, _)| count > 0))
}

proptest! {
    /// PLN-5, PLN-8, PLN-9
    #[test]
    fn every_group_visits_every_sample_once_and_as_defined(
        members in prop::collection::vec(chunks(), 1..4),
        group in prop_oneof![1..8_u32, 1..60_u32, Just(u32::MAX)],
        (seed, lanes, one_of) in (any::<u64>(), any::<prop::sample::Index>(), 1..6_u64),
    ) {
        let whole = extents(&members);
        let (first, counts) = naive_extents(&members);
        let units = naive::units(&counts, usize::try_from(group).unwrap());
        let subset_wanted: Vec<u64> =
            (0..whole.sample_count()).filter(|&ordinal| naive::below(seed, ordinal, one_of) == 0).collect();
        let all: Vec<u64> = (0..whole.sample_count()).collect();
        // Every sample 0 to 3 times.
        let repeated: Vec<u64> = all.iter().flat_map(|&ordinal| {
            std::iter::repeat_n(ordinal, usize::try_from(naive::below(seed, ordinal, 4)).unwrap())
        }).collect();
        for (wanted, is_subset) in [(all, false), (subset_wanted, true), (repeated, true)] {
            if wanted.is_empty() {
                continue;
            }
            let planned = if is_subset {
                let subset = Subset::with_repeats(whole.sample_count(), wanted.iter().copied()).unwrap();
                whole.within(&Arc::new(subset)).unwrap()
            } else {
                whole.clone()
            };
            let (first, units) = naive::within(&first, &units, &wanted);
            prop_assert_eq!(planned.unit_count(NonZeroU32::new(group).unwrap()) as usize, units.len());
            let lanes = 1 + lanes.index(wanted.len()) as u64;
            let mut model = naive::Lanes::of_units(&first, &units, naive::key(&[seed, 1, 5]), lanes);
            let indices = (0..wanted.len() as u64).map(|position| model.at(position));
            let expected: Vec<u64> = indices.map(|index| wanted[usize::try_from(index).unwrap()]).collect();
            let mut found = epoch(planned, seed, lanes, group);
            prop_assert_eq!(&found, &expected);
            found.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
    }

    /// PLN-5
    #[test]
    fn a_group_of_one_extent_is_the_order_of_single_extents(chunks in chunks(), seed: u64, lanes: prop::sample::Index) {
        let sample_count = extents(std::slice::from_ref(&chunks)).sample_count();
        let lanes = 1 + lanes.index(usize::try_from(sample_count).unwrap()) as u64;
        let mut model = naive::Lanes::new(&naive::first(&chunks, CHUNK_SIZE), seed, 1, 5, lanes);
        let expected: Vec<u64> = (0..sample_count).map(|position| model.at(position)).collect();
        prop_assert_eq!(epoch(extents(&[chunks]), seed, lanes, 1), expected);
    }
}

/// PLN-5, PLN-8, PLN-9
#[test]
fn groups_give_the_vectors_of_the_definition() {
    let page = include_str!("../../../order.md");
    let sizes = [3, 2, 4, 1, 2];
    let members: [Chunks; 2] = [vec![(3, 1), (2, 1), (4, 1)], vec![(1, 1), (2, 1)]];
    let subset = Arc::new(Subset::from_ordinals(12, [1, 4, 5, 6, 10, 11]).unwrap());
    let repeated = Arc::new(Subset::with_repeats(12, [1, 4, 4, 4, 5, 10, 10]).unwrap());
    let vectors: [(Extents, u64, u32, &[u64]); 6] = [
        (of_sizes(&sizes), 3, 1, &[9, 0, 6, 2, 1, 3, 7, 11, 4, 8, 10, 5]),
        (of_sizes(&sizes), 3, 2, &[9, 0, 6, 2, 1, 11, 7, 3, 10, 8, 4, 5]),
        (of_sizes(&sizes), 3, 3, &[11, 0, 8, 2, 1, 7, 9, 3, 5, 10, 4, 6]),
        (extents(&members), 3, 2, &[8, 0, 5, 2, 1, 9, 6, 3, 11, 7, 4, 10]),
        (of_sizes(&sizes).within(&subset).unwrap(), 2, 2, &[6, 4, 1, 11, 5, 10]),
        (of_sizes(&sizes).within(&repeated).unwrap(), 3, 2, &[5, 4, 10, 1, 4, 4, 10]),
    ];
    for (extents, lanes, group, expected) in vectors {
        assert_eq!(epoch(extents, 7, lanes, group), expected, "group {group}");
        assert!(page.contains(&format!("`{expected:?}`")), "{expected:?} is in order.md");
    }
}
