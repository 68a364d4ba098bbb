//! Compares the plan with the definition of every order: with hard-coded epochs, and with a naive transcription of the
//! definition for random datasets. Invalid plans are refused.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::NonZeroU32;
use std::sync::Arc;

use grainstore_plan::{Extents, ExtentsBuilder, Order, Plan, PlanError, PlanSpec};
use proptest::prelude::*;

use crate::naive;

const CHUNK_SIZE: u64 = 4096;

/// A position and the ordinal there.
type At = (u64, u64);

/// Extents of these sizes, from chunks of short samples.
fn extents(sizes: &[u64]) -> Arc<Extents> {
    let mut builder = ExtentsBuilder::new(CHUNK_SIZE);
    for &size in sizes {
        builder.chunk(size, 1).unwrap();
    }
    Arc::new(builder.finish())
}

#[derive(Clone, Copy, Debug)]
struct Draw {
    seed: u64,
    epoch: u64,
    fingerprint: u64,
}

fn plan(extents: &Arc<Extents>, draw: Draw, order: Order, lanes: u64) -> Result<Plan, PlanError> {
    let Draw { seed, epoch, fingerprint } = draw;
    Plan::new(PlanSpec { extents: Arc::clone(extents), seed, epoch, fingerprint, order, lanes, group: NonZeroU32::MIN })
}

fn draw(seed: u64, epoch: u64, fingerprint: u64) -> Draw {
    Draw { seed, epoch, fingerprint }
}

fn positions(plan: &Plan) -> Vec<u64> {
    (0..plan.len()).map(|position| plan.at(position)).collect()
}

/// PLN-1, PLN-5
#[test]
fn chunked_gives_the_epochs_of_the_definition() {
    let mixed: &[u64] = &[3, 2, 4, 1, 2];
    let cases: [(&[u64], Draw, u64, &[u64]); 7] = [
        (mixed, draw(7, 0, 5), 3, &[0, 11, 1, 9, 6, 8, 4, 3, 5, 2, 10, 7]),
        (mixed, draw(7, 1, 5), 3, &[9, 0, 6, 2, 1, 3, 7, 11, 4, 8, 10, 5]),
        (&[1], draw(1, 2, 3), 1, &[0]),
        (&[3, 3, 1], draw(1, 1, 99), 2, &[2, 3, 6, 0, 4, 5, 1]),
        (&[7], draw(0, 0, 0), 7, &[2, 3, 4, 5, 6, 0, 1]),
        (
            &[1, 1, 1, 17, 1, 1],
            draw(u64::MAX, 1 << 63, u64::MAX - 1),
            4,
            &[12, 18, 0, 5, 9, 14, 2, 6, 11, 17, 1, 4, 10, 16, 20, 19, 7, 15, 21, 3, 8, 13],
        ),
        (&[4; 4], draw(11, 3, 8), 1, &[2, 3, 12, 15, 13, 14, 4, 5, 7, 6, 11, 9, 10, 8, 1, 0]),
    ];
    for (sizes, draw, lanes, expected) in cases {
        let plan = plan(&extents(sizes), draw, Order::Chunked, lanes).unwrap();
        assert_eq!(positions(&plan), expected, "{sizes:?} {draw:?} {lanes} lanes");
    }
}

/// PLN-2, PLN-5
#[test]
fn chunked_matches_the_definition_at_single_positions_of_larger_datasets() {
    let equal = |count: usize, size: u64, last: u64| [vec![size; count], vec![last]].concat();
    let cases: [(Vec<u64>, u64, Draw, &[At]); 3] = [
        (
            equal(142, 7, 6),
            12,
            draw(1, 1, 99),
            &[(0, 147), (1, 14), (2, 82), (333, 589), (500, 984), (998, 81), (999, 987)],
        ),
        (
            equal(2049, 2, 1),
            96,
            draw(1, 1, 99),
            &[(0, 2568), (1, 722), (2, 1355), (1366, 2885), (2049, 3365), (4097, 1740), (4098, 25)],
        ),
        (
            vec![200_000], // one chunk: extents of 65,536 samples and a rest
            5,
            draw(9, 4, 77),
            &[
                (0, 7213),
                (1, 73_396),
                (2, 108_200),
                (66_666, 121_482),
                (100_000, 47_128),
                (199_998, 153_876),
                (199_999, 184_666),
            ],
        ),
    ];
    for (sizes, lanes, draw, expected) in cases {
        let plan = plan(&extents(&sizes), draw, Order::Chunked, lanes).unwrap();
        for &(position, ordinal) in expected {
            assert_eq!(plan.at(position), ordinal, "position {position}, {lanes} lanes");
            assert_eq!(plan.ordinals_from(position).next(), Some(ordinal));
        }
    }
}

/// PLN-4
#[test]
fn full_gives_the_epochs_of_the_definition() {
    let cases: [&[u64]; 7] = [
        &[0],
        &[0, 1],
        &[2, 1, 0],
        &[4, 3, 0, 1, 2],
        &[4, 8, 11, 7, 2, 10, 0, 1, 9, 3, 5, 6],
        &[15, 8, 11, 7, 2, 14, 13, 1, 12, 3, 5, 6, 9, 0, 10, 4],
        &[15, 8, 11, 7, 2, 14, 13, 1, 16, 3, 5, 6, 9, 0, 10, 4, 12],
    ];
    for expected in cases {
        let plan = plan(&extents(&[expected.len() as u64]), draw(7, 1, 5), Order::Full, 0).unwrap();
        assert_eq!(positions(&plan), expected);
    }
    let large = plan(&extents(&[1_000_003]), draw(7, 1, 5), Order::Full, 0).unwrap();
    for (position, ordinal) in [(0, 706_841), (1, 53_905), (500_001, 218_937), (1_000_002, 517_913)] {
        assert_eq!(large.at(position), ordinal);
    }
}

/// PLN-3
#[test]
fn sequential_is_the_stored_order() {
    let plan = plan(&extents(&[3, 1, 5]), draw(7, 1, 5), Order::Sequential, 0).unwrap();
    assert_eq!(positions(&plan), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(plan.ordinals_from(6).collect::<Vec<_>>(), [6, 7, 8]);
}

/// PLN-1
#[test]
fn seed_epoch_and_fingerprint_each_change_the_order() {
    let extents = extents(&[50; 20]);
    for order in [Order::Full, Order::Chunked] {
        let of = |draw| positions(&plan(&extents, draw, order, 6).unwrap());
        let base = of(draw(1, 2, 3));
        assert_eq!(of(draw(1, 2, 3)), base);
        for other in [draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4), draw(2, 1, 3)] {
            assert_ne!(of(other), base, "{order} {other:?}");
        }
    }
}

/// PLN-5
#[test]
fn a_number_of_lanes_that_leaves_a_lane_empty_is_refused() {
    let extents = extents(&[5, 7]);
    for lanes in [0, 13, u64::MAX] {
        let error = plan(&extents, draw(1, 1, 1), Order::Chunked, lanes).unwrap_err();
        assert_eq!(error, PlanError::LanesOutOfRange { lanes, sample_count: 12 });
    }
    let error = plan(&extents, draw(1, 1, 1), Order::Chunked, 13).unwrap_err();
    assert_eq!(error.to_string(), "number of lanes is 13, expected 1 to 12 (one sample a lane)");
    for order in [Order::Sequential, Order::Full] {
        assert_eq!(plan(&extents, draw(1, 1, 1), order, 0).unwrap().order(), order);
    }
}

#[test]
fn a_dataset_without_samples_is_refused() {
    for order in [Order::Sequential, Order::Full, Order::Chunked] {
        let error = plan(&extents(&[0, 0]), draw(1, 1, 1), order, 1).unwrap_err();
        assert_eq!(error, PlanError::NoSamples);
        assert_eq!(error.to_string(), "dataset has no samples, an epoch needs at least 1");
    }
}

#[test]
fn a_plan_is_shared_between_threads() {
    fn assert_shareable<T: Clone + Send + Sync + 'static>(_: &T) {}
    let plan = plan(&extents(&[5, 7]), draw(1, 1, 1), Order::Chunked, 3).unwrap();
    assert_shareable(&plan);
    assert_shareable(&plan.ordinals_from(0));
    assert_shareable(&plan.lanes().unwrap().schedule());
}

/// (sample count, last stored length) of chunks: empty, tiny, skewed, with lone samples.
fn chunks() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let sample_count = prop_oneof![2 => Just(0), 5 => 1..4u64, 3 => 1..40u64, 1 => 200..600u64];
    let last_stored_len = prop_oneof![4 => Just(100), 1 => Just(8 * CHUNK_SIZE)];
    prop::collection::vec((sample_count, last_stored_len), 1..40)
        .prop_filter("a dataset with samples", |chunks| chunks.iter().any(|&(count, _)| count > 0))
}

proptest! {
    /// PLN-2, PLN-5
    #[test]
    fn chunked_visits_every_sample_once_and_as_defined(
        chunks in chunks(), seed: u64, epoch: u64, fingerprint: u64, lanes: prop::sample::Index, few in any::<bool>(),
    ) {
        let first = naive::first(&chunks, CHUNK_SIZE);
        let sample_count = *first.last().unwrap();
        let lanes_max = usize::try_from(if few { sample_count.min(12) } else { sample_count }).unwrap();
        let lanes = 1 + lanes.index(lanes_max) as u64;
        let mut builder = ExtentsBuilder::new(CHUNK_SIZE);
        for (sample_count, last_stored_len) in chunks {
            builder.chunk(sample_count, last_stored_len).unwrap();
        }
        let extents = Arc::new(builder.finish());
        let starts: Vec<u64> = (0..extents.count()).map(|extent| extents.samples(extent).start).collect();
        prop_assert_eq!(&starts[..], &first[..first.len() - 1]);

        let plan = plan(&extents, draw(seed, epoch, fingerprint), Order::Chunked, lanes).unwrap();
        let mut model = naive::Lanes::new(&first, seed, epoch, fingerprint, lanes);
        let expected: Vec<u64> = (0..sample_count).map(|position| model.at(position)).collect();
        let mut found = positions(&plan);
        prop_assert_eq!(&found, &expected);
        found.sort_unstable();
        prop_assert!(found.into_iter().eq(0..sample_count));
    }

    /// PLN-4
    #[test]
    fn full_visits_every_sample_once_and_as_defined(
        sample_count in prop_oneof![1..70u64, 1..3000u64], seed: u64, epoch: u64, fingerprint: u64,
    ) {
        let plan = plan(&extents(&[sample_count]), draw(seed, epoch, fingerprint), Order::Full, 1).unwrap();
        let mut found = positions(&plan);
        prop_assert_eq!(&found, &naive::full(sample_count, seed, epoch, fingerprint));
        found.sort_unstable();
        prop_assert!(found.into_iter().eq(0..sample_count));
    }
}

/// PLN-5
#[test]
fn every_small_shape_is_visited_once_for_every_number_of_lanes() {
    for sample_count in 1..=16 {
        for size in 1..=sample_count {
            let rest = sample_count % size;
            let sizes = [vec![size; usize::try_from(sample_count / size).unwrap()], vec![rest]].concat();
            let extents = extents(&sizes);
            for lanes in 1..=sample_count {
                let plan = plan(&extents, draw(size, lanes, 7), Order::Chunked, lanes).unwrap();
                let mut found = positions(&plan);
                found.sort_unstable();
                assert!(found.into_iter().eq(0..sample_count), "{sizes:?}, {lanes} lanes");
            }
        }
    }
}
