//! An epoch that visits samples several times: by a subset with repeats, or drawn by weights. Each visit has its bytes,
//! its ordinal and its repeat, the same for any number of ranks and from anywhere; an extent is read once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use grainstore_format::{Remedy, to_usize};
use grainstore_reader::plan::{Order, PlanError, Tail};
use grainstore_reader::{EpochOptions, EpochState, IoChoice, ReadError, Reader, ReaderOptions, Subset, Weights};

use crate::common::{self, Made, ORDERS, Random, Shape};

const N: u64 = 900;

/// Small samples, compressed ones, and some of many chunks, in several segments.
fn made() -> Made {
    let mut random = Random(9);
    let len = |random: &mut Random| if random.below(60) == 0 { 40_000 } else { random.below(900) };
    let payload_lens: Vec<usize> = (0..N).map(|_| to_usize(len(&mut random))).collect();
    Shape { lz4: true, segment_size: 100_000, ..Shape::plain(4096, payload_lens) }.write()
}

/// Half of the samples never, most once, some up to 40 times.
fn repeated(random: &mut Random) -> Arc<Subset> {
    let mut visits = Vec::new();
    for ordinal in 0..N {
        let count = match random.below(20) {
            0..10 => 0,
            10..16 => 1,
            16..19 => 2 + random.below(3),
            _ => random.below(40),
        };
        visits.extend(std::iter::repeat_n(ordinal, to_usize(count)));
    }
    Arc::new(Subset::with_repeats(N, visits).unwrap())
}

fn weights(random: &mut Random, of: u64, draws: u64) -> Arc<Weights> {
    let given = (0..of).map(|_| if random.below(3) == 0 { 0.0 } else { random.below(1000) as f64 / 7.0 });
    Arc::new(Weights::new(given.collect::<Vec<_>>(), draws).unwrap())
}

fn options(order: Order) -> EpochOptions {
    EpochOptions { batch_size: NonZeroUsize::new(32).unwrap(), ..common::epoch_options(order) }
}

/// Position, ordinal and repeat of all visits of all ranks, in the order of their positions.
fn run(made: &Made, reader: &Reader, options: &EpochOptions) -> Vec<(u64, u64, u64)> {
    let mut visits = Vec::new();
    for rank in 0..options.world {
        for batch in reader.epoch(&EpochOptions { rank, ..options.clone() }).unwrap() {
            let batch = batch.unwrap();
            made.check(&batch);
            let repeats = batch.repeats();
            for (index, (&position, &ordinal)) in batch.positions().iter().zip(batch.ordinals()).enumerate() {
                visits.push((position, ordinal, repeats.get(index).copied().unwrap_or(0)));
            }
        }
    }
    visits.sort_unstable();
    visits
}

/// Checks that an epoch visits what its plan says, and this subset in all.
fn check(made: &Made, reader: &Reader, options: &EpochOptions, expected: &Subset) {
    let visits = run(made, reader, options);
    let plan = reader.plan(options).unwrap();
    let plan = plan.plan();
    let planned = (0..plan.len()).map(|position| (position, plan.at(position), plan.repeat_at(position)));
    assert!(planned.eq(visits.iter().copied()), "{options:?}");
    let mut found: Vec<(u64, u64)> = visits.into_iter().map(|(_, ordinal, repeat)| (ordinal, repeat)).collect();
    found.sort_unstable();
    let wanted = (0..expected.len()).map(|index| (expected.ordinal(index), expected.repeat(index)));
    assert!(wanted.eq(found), "{options:?}");
}

/// PLN-9
#[test]
fn every_visit_of_a_subset_with_repeats_is_made_once_by_any_number_of_ranks() {
    let made = made();
    let mut random = Random(5);
    for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
        let reader = made.reader(io);
        for order in ORDERS {
            let subset = repeated(&mut random);
            for world in [1, 3, 24] {
                let options = EpochOptions { world, subset: Some(Arc::clone(&subset)), ..options(order) };
                check(&made, &reader, &options, &subset);
            }
        }
    }
}

/// PLN-11
#[test]
fn an_epoch_by_weights_visits_what_is_drawn_and_another_draws_others() {
    let made = made();
    let reader = made.reader(IoChoice::Buffered);
    let mut random = Random(6);
    for order in ORDERS {
        let subset = repeated(&mut random);
        for (subset, len) in [(None, N), (Some(Arc::clone(&subset)), subset.len())] {
            let weights = weights(&mut random, len, 1500);
            let of = |epoch, world| EpochOptions {
                epoch,
                world,
                subset: subset.clone(),
                weights: Some(Arc::clone(&weights)),
                ..options(order)
            };
            let drawn = |epoch| {
                let plan = reader.plan(&of(epoch, 1)).unwrap();
                Subset::clone(plan.plan().extents().subset().unwrap())
            };
            assert_ne!(drawn(0), drawn(1));
            for world in [1, 2, 5, 24] {
                check(&made, &reader, &of(1, world), &drawn(1));
            }
        }
    }
}

/// STA-3
#[test]
fn an_epoch_with_repeats_resumes_at_any_position_with_other_ranks() {
    let made = made();
    let reader = made.reader(IoChoice::Buffered);
    let mut random = Random(7);
    for order in ORDERS {
        for by_weights in [false, true] {
            let subset = (!by_weights).then(|| repeated(&mut random));
            let weights = by_weights.then(|| weights(&mut random, N, 700));
            let whole = EpochOptions { subset, weights, seed: 3, ..options(order) };
            let expected = run(&made, &reader, &whole);
            for _ in 0..12 {
                let world = 1 + random.below(24);
                let batch_size = NonZeroUsize::new(to_usize(1 + random.below(20))).unwrap();
                let first = EpochOptions { world, batch_size, tail: Tail::Short, ..whole.clone() };
                let plan = reader.plan(&first).unwrap();
                let state = plan.state_after(random.below(plan.share().batch_count() + 1)).to_string();
                let state: EpochState = state.parse().unwrap();
                let from = to_usize(state.position());
                let world = 1 + random.below(24);
                let again = EpochOptions { resume: Some(state), world, ..whole.clone() };
                assert_eq!(run(&made, &reader, &again), expected[from..], "{order}, from {from}");
            }
        }
    }
}

#[test]
fn epochs_by_weights_that_follow_each_other_are_the_same_as_each_alone() {
    let made = made();
    let mut random = Random(8);
    for cache_bytes in [0, 100_000, 64 << 20] {
        for order in ORDERS {
            let weights = weights(&mut random, N, 600);
            let of = |epoch, followed| EpochOptions {
                epoch,
                followed,
                weights: Some(Arc::clone(&weights)),
                ..options(order)
            };
            let reader = ReaderOptions { cache_bytes, ..ReaderOptions::default() };
            let reader = Reader::open(made.path(), reader).unwrap();
            for epoch in 0..4 {
                let alone = run(&made, &made.reader(IoChoice::Buffered), &of(epoch, false));
                assert_eq!(run(&made, &reader, &of(epoch, epoch < 3)), alone, "{order}, epoch {epoch}");
            }
        }
    }
}

#[test]
fn an_extent_is_read_once_however_often_its_samples_are_visited() {
    let made = Shape::plain(4096, vec![300; 500]).write();
    let reader = made.reader(IoChoice::Buffered);
    let subset = Arc::new(Subset::with_repeats(500, (0..500).flat_map(|i| [i; 7])).unwrap());
    for (order, lanes) in [(Order::Sequential, None), (Order::Chunked, Some(1))] {
        let options = EpochOptions { subset: Some(Arc::clone(&subset)), lanes, ..options(order) };
        let mut epoch = reader.epoch(&options).unwrap();
        assert_eq!(epoch.by_ref().map(|batch| batch.unwrap().len()).sum::<usize>(), 3500);
        let read_bytes = epoch.stats().read_bytes;
        // One lane begins in the middle of an extent, and ends there.
        assert!((150_000..150_000 + 2 * 4096 + 300).contains(&read_bytes), "{order}: {read_bytes}");
    }
}

/// STA-2
#[test]
fn a_state_of_other_weights_is_refused() {
    let made = Shape::plain(4096, vec![300; 50]).write();
    let reader = made.reader(IoChoice::Buffered);
    let weighted = |weights: &[f64], draws| EpochOptions {
        weights: Some(Arc::new(Weights::new(weights.iter().copied(), draws).unwrap())),
        ..options(Order::Chunked)
    };
    let own = weighted(&[1.0; 50], 40);
    let state = reader.plan(&own).unwrap().state_after(1);
    let resumed =
        |options: &EpochOptions| reader.plan(&EpochOptions { resume: Some(state.clone()), ..options.clone() });
    assert!(resumed(&own).is_ok());
    assert!(resumed(&weighted(&[4.0; 50], 40)).is_ok(), "the same integers");
    let mut other = [1.0; 50];
    other[3] = 1.5;
    for (options, remedy) in [
        (weighted(&other, 40), Remedy::ResumeWithSameWeights),
        (weighted(&[1.0; 50], 41), Remedy::ResumeWithSameWeights),
        (options(Order::Chunked), Remedy::ResumeWithSameWeights),
    ] {
        let ReadError::State(error) = resumed(&options).unwrap_err() else { panic!("{options:?}") };
        assert_eq!(error.remedy(), Some(remedy));
        assert!(error.to_string().starts_with("state is of an epoch drawn by the weights "), "{error}");
    }
    let plain = reader.plan(&options(Order::Chunked)).unwrap().state_after(1);
    let ReadError::State(error) = reader.plan(&EpochOptions { resume: Some(plain), ..own }).unwrap_err() else {
        panic!()
    };
    assert_eq!(error.remedy(), Some(Remedy::ResumeWithoutWeights));
    let wrong = reader.plan(&weighted(&[1.0; 49], 40)).unwrap_err();
    assert!(matches!(wrong, ReadError::Plan(PlanError::WeightsOfOther { expected: 50, found: 49 })), "{wrong}");
}

/// A window that a state does not have decides the epochs after the one that it resumes.
#[test]
fn an_epoch_after_a_resumed_one_is_the_same_as_alone() {
    let made = Shape::plain(4096, vec![300; 2000]).write();
    let base = options(Order::Chunked);
    let reader = made.reader(IoChoice::Buffered);
    let few = EpochOptions { lanes: Some(3), ..base.clone() };
    let state = reader.plan(&few).unwrap().state_after(2);
    let resumed = EpochOptions { resume: Some(state), followed: true, ..base.clone() };
    run(&made, &reader, &resumed);
    let next = EpochOptions { epoch: base.epoch + 1, ..base };
    let plan = reader.plan(&next).unwrap();
    let expected: Vec<u64> = plan.plan().ordinals_from(0).collect();
    let found: Vec<u64> = run(&made, &reader, &next).into_iter().map(|(_, ordinal, _)| ordinal).collect();
    assert_eq!(found, expected);
}
