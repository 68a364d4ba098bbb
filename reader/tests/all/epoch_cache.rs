//! A cache of extents: cached extents stay, so a later epoch reads only the rest, and returns the same samples.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, EpochStats, IoChoice, OnDamage, Reader, ReaderOptions, Subset};

use crate::common::{self, Made, ORDERS, Random, Shape};

/// About 6 MiB: small samples in extents of 64 KiB, and some that are extents by themselves, read straight into their
/// batch.
fn made(segment_size: u64) -> Made {
    let mut random = Random(13);
    let len = |random: &mut Random| if random.below(100) == 0 { 90_000 } else { random.below(4000) };
    let payload_lens = (0..2000).map(|_| to_usize(len(&mut random))).collect();
    Shape { segment_size, ..Shape::plain(64 << 10, payload_lens) }.write()
}

fn reader(made: &Made, io: IoChoice, cache_bytes: u64) -> Reader {
    Reader::open(made.path(), ReaderOptions { io, cache_bytes, ..ReaderOptions::default() }).unwrap()
}

fn options(order: Order, epoch: u64) -> EpochOptions {
    let batch_size = NonZeroUsize::new(32).unwrap();
    EpochOptions { batch_size, epoch, lanes: Some(12), ..common::epoch_options(order) }
}

/// Reads an epoch, compares it with its plan and the payloads, and returns its statistics.
fn run(made: &Made, reader: &Reader, options: &EpochOptions) -> EpochStats {
    let steps = reader.plan(options).unwrap().steps(0);
    let mut epoch = reader.epoch(options).unwrap();
    for step in steps {
        let batch = epoch.next_batch().unwrap().unwrap();
        made.check(&batch);
        assert_eq!(batch.ordinals(), step.ordinals);
    }
    assert!(epoch.next_batch().is_none());
    epoch.stats()
}

#[test]
fn the_second_epoch_of_a_cached_dataset_reads_nothing_in_any_order() {
    let made = made(1 << 20);
    for io in [IoChoice::Buffered, IoChoice::Direct] {
        for first in ORDERS {
            let reader = reader(&made, io, 64 << 20);
            let alone = run(&made, &made.reader(io), &options(first, 0));
            let stats = run(&made, &reader, &options(first, 0));
            // In the first epoch the cache causes no further reads: an extent is read whole, once.
            assert!(
                stats.read_bytes <= alone.read_bytes * 13 / 10,
                "{first}: {} of {}",
                stats.read_bytes,
                alone.read_bytes
            );
            for second in ORDERS {
                for number in 1..3 {
                    let stats = run(&made, &reader, &options(second, number));
                    assert_eq!(
                        (stats.read_bytes, stats.request_count, stats.cached_samples),
                        (0, 0, 2000),
                        "{first}, {second}"
                    );
                }
            }
        }
    }
}

#[test]
fn cached_extents_stay_and_their_samples_need_no_read() {
    let made = made(1 << 40);
    let total = run(&made, &made.reader(IoChoice::Buffered), &options(Order::Chunked, 0)).read_bytes;
    for order in ORDERS {
        for share in [4, 2] {
            let reader = reader(&made, IoChoice::Buffered, total / share);
            let first = run(&made, &reader, &options(order, 0));
            assert!(first.read_bytes <= total * 13 / 10);
            let later: Vec<EpochStats> = (1..4).map(|number| run(&made, &reader, &options(order, number))).collect();
            for stats in &later {
                let rate = stats.cached_samples as f64 / 2000.0;
                let resident = 1.0 - stats.read_bytes as f64 / total as f64;
                let expected = 1.0 / share as f64;
                assert!((resident - expected).abs() < 0.06, "{order}: {resident} of the bytes, {expected} resident");
                assert!((rate - expected).abs() < 0.12, "{order}: {rate} of the samples, {expected} resident");
                assert_eq!(stats.cached_samples, later[0].cached_samples, "{order}: nothing comes or goes");
            }
        }
    }
}

#[test]
fn ranks_share_the_cache_of_their_reader_and_its_second_epoch_reads_nothing() {
    let made = made(1 << 20);
    let reader = reader(&made, IoChoice::Direct, 64 << 20);
    for number in 0..3 {
        let run_rank = |rank| run(&made, &reader, &EpochOptions { rank, world: 3, ..options(Order::Chunked, number) });
        let stats: Vec<EpochStats> = std::thread::scope(|scope| {
            let ranks: Vec<_> = (0..3).map(|rank| scope.spawn(move || run_rank(rank))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        let read: u64 = stats.iter().map(|stats| stats.read_bytes).sum();
        assert!((number == 0) == (read > 0), "epoch {number}: {read} bytes");
    }
}

#[test]
fn only_the_wanted_bytes_of_a_sparse_subset_are_kept() {
    let made = Shape::plain(256 << 10, vec![12_000; 880]).write();
    let of = |k: u64| Arc::new(Subset::from_ordinals(880, (0..880).filter(|ordinal| ordinal % 4 == k)).unwrap());
    for order in ORDERS {
        // The whole dataset would be 10.6 MB.
        let reader = reader(&made, IoChoice::Buffered, 4 << 20);
        let with = |k, number| EpochOptions { subset: Some(of(k)), ..options(order, number) };
        let wanted = 220 * 12_000;
        assert!((wanted..wanted * 13 / 10).contains(&run(&made, &reader, &with(0, 0)).read_bytes));
        assert_eq!(run(&made, &reader, &with(0, 1)).read_bytes, 0);
        // Another subset finds none of its samples in the cache, and reads them.
        assert_eq!(run(&made, &reader, &with(1, 2)).read_bytes, wanted);
        assert_eq!(run(&made, &reader, &with(0, 3)).read_bytes, 0);
    }
}

#[test]
fn damage_in_the_cache_is_found_each_time() {
    let made = made(1 << 20);
    let broken = [3, 700, 1999];
    broken.iter().for_each(|ordinal| made.flip(*ordinal, 0));
    for order in ORDERS {
        let reader = reader(&made, IoChoice::Buffered, 64 << 20);
        for number in 0..2 {
            let options = EpochOptions { on_damage: OnDamage::Skip, ..options(order, number) };
            let mut epoch = reader.epoch(&options).unwrap();
            let mut skipped = Vec::new();
            for batch in epoch.by_ref() {
                let batch = batch.unwrap();
                made.check(&batch);
                skipped.extend(batch.skipped().iter().map(|sample| sample.ordinal));
            }
            skipped.sort_unstable();
            assert_eq!(skipped, broken, "{order}, epoch {number}");
            assert!(number == 0 || epoch.stats().read_bytes == 0);
        }
    }
}

#[test]
fn an_epoch_dropped_in_the_middle_frees_the_room_it_had_reserved() {
    let made = made(1 << 20);
    for order in ORDERS {
        let reader = reader(&made, IoChoice::Buffered, 12 << 20);
        for number in 0..6 {
            let mut epoch = reader.epoch(&options(order, number)).unwrap();
            epoch.by_ref().take(3 + to_usize(number)).for_each(|batch| made.check(&batch.unwrap()));
        }
        run(&made, &reader, &options(order, 8));
        assert_eq!(run(&made, &reader, &options(order, 9)).read_bytes, 0, "{order}");
    }
}

#[test]
fn samples_of_no_bytes_are_not_waited_for() {
    let made = Shape::plain(4096, vec![0; 300]).write();
    for order in ORDERS {
        let reader = reader(&made, IoChoice::Buffered, 1 << 20);
        (0..2).for_each(|number| assert_eq!(run(&made, &reader, &options(order, number)).read_bytes, 0));
    }
}

#[test]
fn the_epoch_looks_ahead_a_bounded_number_of_units_with_any_cache() {
    let made = Shape::plain(4096, vec![8; 60_000]).write();
    let reader = reader(&made, IoChoice::Buffered, 16 << 20);
    run(&made, &reader, &options(Order::Full, 0));
    let mut epoch = reader.epoch(&options(Order::Full, 1)).unwrap();
    epoch.next_batch().unwrap().unwrap();
    // A unit is counted when its first sample is visited, not when it is looked up. So this shows that an epoch that
    // stops early has not been scheduled to its end.
    assert!(epoch.stats().cached_samples < 30_000);
}

#[test]
fn epochs_that_follow_each_other_use_the_cache() {
    let made = made(1 << 20);
    let reader = reader(&made, IoChoice::Direct, 64 << 20);
    let read =
        |number| run(&made, &reader, &EpochOptions { followed: true, ..options(Order::Chunked, number) }).read_bytes;
    let read: Vec<u64> = (0..3).map(read).collect();
    assert!(read[0] > 0 && read[2] == 0, "{read:?}");
}
