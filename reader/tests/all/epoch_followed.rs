//! Epochs that follow each other: reads of the next epoch begin before this one ends, and it gives the same batches as
//! alone.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::num::NonZeroUsize;

use grainstore_format::to_usize;
use grainstore_reader::plan::Order;
use grainstore_reader::{Epoch, EpochOptions, IoChoice, ReadError};

use crate::common::{self, Made, ORDERS, Random, Shape};

fn made() -> Made {
    let mut random = Random(8);
    let payload_len = |random: &mut Random| if random.below(50) == 0 { 80_000 } else { random.below(3000) };
    let payload_lens = (0..500).map(|_| to_usize(payload_len(&mut random))).collect();
    Shape { segment_size: 500_000, ..Shape::plain(4096, payload_lens) }.write()
}

fn options(order: Order, epoch: u64) -> EpochOptions {
    let batch_size = NonZeroUsize::new(32).unwrap();
    let window_len = 64 << 10;
    EpochOptions { epoch, batch_size, window_len, followed: true, ..common::epoch_options(order) }
}

/// The ordinals of the remaining batches, whose payloads are checked.
fn rest(made: &Made, epoch: &mut Epoch) -> Vec<Vec<u64>> {
    let batches = epoch.map(|batch| {
        let batch = batch.unwrap();
        made.check(&batch);
        batch.ordinals().to_vec()
    });
    batches.collect()
}

fn alone(made: &Made, options: &EpochOptions) -> (Vec<Vec<u64>>, u64) {
    let options = EpochOptions { followed: false, ..options.clone() };
    let mut epoch = made.reader(IoChoice::Buffered).epoch(&options).unwrap();
    let batches = rest(made, &mut epoch);
    (batches, epoch.stats().request_count)
}

#[test]
fn epochs_that_follow_each_other_are_the_same_as_each_alone() {
    let made = made();
    for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
        for order in ORDERS {
            let reader = made.reader(io);
            for number in 0..5 {
                let mut epoch = reader.epoch(&options(order, number)).unwrap();
                assert_eq!(epoch.len(), 16);
                assert_eq!(rest(&made, &mut epoch), alone(&made, &options(order, number)).0, "{order}, epoch {number}");
                assert!(epoch.next_batch().is_none());
                assert_eq!(epoch.stats().samples, 500);
            }
        }
    }
}

#[test]
fn the_last_epoch_need_not_be_followed() {
    let made = made();
    let reader = made.reader(IoChoice::Buffered);
    rest(&made, &mut reader.epoch(&options(Order::Chunked, 0)).unwrap());
    let last = EpochOptions { followed: false, ..options(Order::Chunked, 1) };
    assert_eq!(rest(&made, &mut reader.epoch(&last).unwrap()), alone(&made, &last).0);
}

#[test]
fn the_first_reads_of_the_next_epoch_are_made_before_this_one_ends() {
    let made = made();
    for order in ORDERS {
        let reader = made.reader(IoChoice::Buffered);
        // The dataset fits in the read-ahead, so the last batch is not waited for.
        let options = |order, number| EpochOptions { window_len: 512 << 10, ..options(order, number) };
        let alone: Vec<u64> = (0..2).map(|number| alone(&made, &options(order, number)).1).collect();
        let mut first = reader.epoch(&options(order, 0)).unwrap();
        rest(&made, &mut first);
        let early = first.stats().request_count - alone[0];
        assert!((1..=alone[1]).contains(&early), "{order}: {early} of {} reads", alone[1]);
        let mut second = reader.epoch(&options(order, 1)).unwrap();
        rest(&made, &mut second);
        // Its reads before it began were counted in the epoch before.
        let late = second.stats().request_count;
        assert!(late >= alone[1] - early, "{order}: {late} reads and {early}, alone it takes {}", alone[1]);
        assert!(late < 2 * alone[1], "{order}: {late} reads: those of the epoch before are not counted again");
    }
}

#[test]
fn an_epoch_other_than_the_prepared_one_is_right_too() {
    let made = made();
    let reader = made.reader(IoChoice::Buffered);
    for (order, number) in [(Order::Chunked, 0), (Order::Chunked, 7), (Order::Full, 8), (Order::Sequential, 2)] {
        let options = options(order, number);
        assert_eq!(rest(&made, &mut reader.epoch(&options).unwrap()), alone(&made, &options).0, "{order}");
    }
    // The same epoch again; the prepared batches are of the next one.
    for _ in 0..2 {
        let again = options(Order::Chunked, 4);
        assert_eq!(rest(&made, &mut reader.epoch(&again).unwrap()), alone(&made, &again).0);
    }
}

#[test]
fn two_epochs_at_a_time_may_both_be_followed() {
    let made = made();
    let reader = made.reader(IoChoice::Buffered);
    let both = [options(Order::Chunked, 0), EpochOptions { seed: 99, ..options(Order::Chunked, 0) }];
    for number in 0..3 {
        let both = both.clone().map(|options| EpochOptions { epoch: number, ..options });
        let mut epochs = both.clone().map(|options| reader.epoch(&options).unwrap());
        for (epoch, options) in epochs.iter_mut().zip(&both) {
            assert_eq!(rest(&made, epoch), alone(&made, options).0);
        }
    }
}

#[test]
fn a_dataset_smaller_than_a_batch_can_be_followed() {
    let made = Shape::plain(4096, vec![100; 3]).write();
    let reader = made.reader(IoChoice::Buffered);
    for number in 0..50 {
        let mut epoch = reader.epoch(&options(Order::Full, number)).unwrap();
        assert_eq!(rest(&made, &mut epoch).len(), 1);
    }
}

#[test]
fn a_failure_in_the_next_epoch_is_reported_there() {
    // More than the queue and the read-ahead hold.
    let shape = Shape { segment_size: 8 << 20, ..Shape::plain(64 << 10, vec![100_000; 300]) };
    let options = |order, number| EpochOptions { batch_size: NonZeroUsize::new(10).unwrap(), ..options(order, number) };
    for order in ORDERS {
        let made = shape.write();
        let reader = made.reader(IoChoice::Buffered);
        let mut first = reader.epoch(&options(order, 0)).unwrap();
        for _ in 0..first.len() - 1 {
            made.check(&first.next_batch().unwrap().unwrap());
        }
        // The current epoch has read all of it; the next one still needs some.
        let path = reader.collection().member(0).unwrap().segments().last().unwrap().path();
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(4096).unwrap();
        let last = first.next_batch().unwrap();
        if let Ok(batch) = last {
            made.check(&batch);
            assert!(first.next_batch().is_none(), "{order}: the first ends as if nothing had happened");
        }
        let second = reader.epoch(&options(order, 1)).unwrap();
        let error = second.last().unwrap().unwrap_err();
        assert!(matches!(error, ReadError::Unreadable { .. }), "{order}: {error}");
        // The failed epoch leaves nothing for the next attempt.
        assert!(reader.epoch(&options(order, 1)).unwrap().last().unwrap().is_err());
    }
}
