//! The cost of an epoch: its memory is bounded by the window and the read-ahead for any size of dataset, and it reads
//! about as many bytes as the dataset has, each once.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use grainstore_format::to_usize;
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, EpochStats, IoChoice};
use std::num::NonZeroU32;

use crate::common::{self, Made, ORDERS, Random, Shape};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn run(made: &Made, io: IoChoice, options: &EpochOptions) -> EpochStats {
    let mut epoch = made.reader(io).epoch(options).unwrap();
    while let Some(batch) = epoch.next_batch() {
        made.check(&batch.unwrap());
    }
    epoch.stats()
}

/// 16 MiB of samples of about 3 KB.
fn small_samples() -> Made {
    let mut random = Random(5);
    Shape::plain(64 * KIB, (0..5600).map(|_| to_usize(2500 + random.below(1000))).collect()).write()
}

#[test]
fn memory_is_bounded_by_the_window_and_the_read_ahead() {
    let made = small_samples();
    for window_len in [MIB, 2 * MIB] {
        for order in ORDERS {
            let options = EpochOptions { window_len, ..common::epoch_options(order) };
            let stats = run(&made, IoChoice::Buffered, &options);
            // Extents are a little longer than a chunk: by their edge sample, and by blocks for alignment.
            let window = match order {
                Order::Chunked => window_len * 9 / 8,
                Order::Sequential => MIB,
                Order::Full => 0,
            };
            let ahead = window_len;
            // Units whose samples are finished are removed after each megabyte of samples.
            // In the full order each sample is read with whole blocks.
            let group = if order == Order::Full { 2 * MIB } else { MIB };
            let bound = window + ahead + group + 128 * KIB;
            assert!(stats.held_bytes_max <= bound, "{order}: {} of {bound}", stats.held_bytes_max);
            assert!(stats.held_bytes_max >= ahead / 2, "{order}: it reads ahead");
        }
    }
}

#[test]
fn a_larger_dataset_takes_no_more_memory() {
    let of = |count: usize| Shape::plain(64 * KIB, vec![3000; count]).write();
    let options = EpochOptions { window_len: MIB, ..common::epoch_options(Order::Chunked) };
    let small = of(1500);
    let large = of(4500);
    let [small, large] = [small, large].map(|made| run(&made, IoChoice::Buffered, &options).held_bytes_max);
    assert!(large <= small * 5 / 4, "{small} bytes for 4.5 MB, {large} for 13.5 MB");
}

#[test]
fn buffered_epochs_read_each_byte_once() {
    let made = small_samples();
    for order in ORDERS {
        let options = EpochOptions { window_len: MIB, ..common::epoch_options(order) };
        let stats = run(&made, IoChoice::Buffered, &options);
        // In the full order, two neighbours that happen to follow each other are read with the small gap between them.
        let gaps = if order == Order::Full { stats.stored_bytes / 100 } else { 0 };
        let exact = stats.stored_bytes..=stats.stored_bytes + gaps;
        assert!(exact.contains(&stats.read_bytes), "{order}: {} of {exact:?}", stats.read_bytes);
        assert_eq!(stats.samples, 5600);
    }
}

#[test]
fn extents_are_read_whole_and_a_megabyte_at_a_time_where_they_follow_each_other() {
    let made = small_samples();
    let reader = made.reader(IoChoice::Buffered);
    let extent_count = u64::from(reader.extents().unwrap().count());
    let sequential = run(&made, IoChoice::Buffered, &common::epoch_options(Order::Sequential));
    let megabytes = sequential.stored_bytes / MIB;
    assert!(
        (megabytes..=megabytes + megabytes / 8 + 1).contains(&sequential.request_count),
        "{}",
        sequential.request_count
    );
    // A lane cuts at most two extents at its ends and one at its phase; a piece of a rotated extent may be two reads.
    for group in [1, 8] {
        let group = NonZeroU32::new(group);
        let options = EpochOptions { lanes: Some(6), group, ..common::epoch_options(Order::Chunked) };
        let chunked = run(&made, IoChoice::Buffered, &options);
        let request_count = chunked.request_count;
        assert!((extent_count..=extent_count + 3 * 6 * 2).contains(&request_count), "{request_count}, {group:?}");
    }
}

#[test]
fn direct_epochs_read_two_blocks_more_for_each_request_at_most() {
    let made = small_samples();
    for order in ORDERS {
        let stats = run(&made, IoChoice::Direct, &common::epoch_options(order));
        let bound = stats.stored_bytes + 2 * 4096 * stats.request_count;
        assert!(stats.read_bytes <= bound, "{order}: {} of {bound}", stats.read_bytes);
    }
}

#[test]
fn lone_samples_are_outside_the_window_and_not_copied() {
    // Samples of 8 to 16 chunks, each larger than the read-ahead.
    let mut random = Random(9);
    let payload_lens: Vec<usize> = (0..60).map(|_| to_usize(512 * KIB + random.below(512 * KIB))).collect();
    let made = Shape::plain(64 * KIB, payload_lens).write();
    for order in ORDERS {
        let options = EpochOptions { window_len: 256 * KIB, ..common::epoch_options(order) };
        let stats = run(&made, IoChoice::Buffered, &options);
        assert_eq!((stats.held_bytes_max, stats.slab_bytes), (0, 0), "{order}: they are read into their batch");
        assert_eq!((stats.read_bytes, stats.request_count), (stats.stored_bytes, 60));
    }
}

#[test]
fn stats_count_what_has_been_returned_so_far() {
    let made = small_samples();
    let mut epoch = made.reader(IoChoice::Buffered).epoch(&common::epoch_options(Order::Full)).unwrap();
    assert_eq!(epoch.stats().samples, 0);
    let batch = epoch.next_batch().unwrap().unwrap();
    let stats = epoch.stats();
    assert_eq!((stats.samples, stats.payload_bytes), (256, batch.payload_bytes()));
    assert!(stats.request_count > 256);
}
