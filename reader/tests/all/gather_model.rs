//! Compares batches of any samples with a simple model: the payloads that were written, in the requested order.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs::OpenOptions;

use grainstore_format::to_usize;
use grainstore_reader::{EngineChoice, IoChoice, ReadError, Reader, ReaderOptions};
use grainstore_store::StoreError;

use crate::common::{Made, Random, Shape};

/// Tiny samples, empty ones, groups of neighbours, raw ones of about 64 KiB, compressed ones.
fn mixed() -> Made {
    let mut random = Random(5);
    let payload_len = |random: &mut Random| match random.below(12) {
        0 => (64 << 10) - 1 + random.below(3),
        1 => 66_000 + random.below(300_000),
        2..4 => 0,
        4..6 => 30_000 + random.below(10_000),
        _ => random.below(300),
    };
    let payload_lens = (0..600).map(|_| to_usize(payload_len(&mut random))).collect();
    Shape { lz4: true, segment_size: 1 << 20, ..Shape::plain(64 << 10, payload_lens) }.write()
}

fn readers(made: &Made) -> Vec<Reader> {
    let choices = [
        (IoChoice::Buffered, EngineChoice::Auto),
        (IoChoice::Direct, EngineChoice::Auto),
        (IoChoice::Buffered, EngineChoice::Pread),
        (IoChoice::Direct, EngineChoice::Pread),
        (IoChoice::Mapped, EngineChoice::Auto),
    ];
    let open = |(io, engine)| {
        Reader::open(made.path(), ReaderOptions { io, engine, threads: 3, ..ReaderOptions::default() }).unwrap()
    };
    choices.into_iter().map(open).collect()
}

/// Random ordinals: some several times, some next to each other.
fn asked(random: &mut Random, sample_count: u64) -> Vec<u64> {
    let mut ordinals = Vec::new();
    for _ in 0..random.below(30) {
        let first = random.below(sample_count);
        match random.below(3) {
            0 => ordinals.extend(first..sample_count.min(first + random.below(20))),
            1 => ordinals.extend([first, first]),
            _ => ordinals.push(first),
        }
    }
    for place in (1..ordinals.len()).rev() {
        ordinals.swap(place, to_usize(random.below(place as u64 + 1)));
    }
    ordinals
}

#[test]
fn any_ordinals_in_any_order_give_what_was_written() {
    let made = mixed();
    for reader in readers(&made) {
        let mut random = Random(77);
        for _ in 0..25 {
            let ordinals = asked(&mut random, 600);
            let batch = reader.get_batch(&ordinals).unwrap();
            assert_eq!(batch.ordinals(), ordinals);
            made.check(&batch);
        }
        let all: Vec<u64> = (0..600).rev().collect();
        made.check(&reader.get_batch(&all).unwrap());
    }
}

#[test]
fn batches_are_the_same_with_and_without_a_loaded_index() {
    let made = mixed();
    let reader = made.reader(IoChoice::Buffered);
    let ordinals = asked(&mut Random(3), 600);
    made.check(&reader.get_batch(&ordinals).unwrap());
    reader.collection().load().unwrap();
    made.check(&reader.get_batch(&ordinals).unwrap());
}

#[test]
fn a_batch_of_several_rounds_is_complete_and_in_order() {
    // 26 times 4 MiB, some of them compressed: several rounds of reads.
    let payload_lens: Vec<usize> = (0..26).map(|i| (4 << 20) + i).chain([5, 0, 70_000]).collect();
    let made = Shape { lz4: true, segment_size: 40 << 20, ..Shape::plain(64 << 10, payload_lens) }.write();
    let mut ordinals: Vec<u64> = (0..29).collect();
    ordinals.extend([28, 3, 3, 0]);
    ordinals.reverse();
    for reader in readers(&made) {
        let batch = reader.get_batch(&ordinals).unwrap();
        assert!(batch.payload_bytes() > 100 << 20);
        made.check(&batch);
    }
}

#[test]
fn the_lowest_of_several_failed_samples_is_reported() {
    let made = mixed();
    let sound = made.reader(IoChoice::Buffered);
    let segments = sound.collection().member(0).unwrap().segments();
    assert!(segments.len() >= 3, "{} segments", segments.len());
    let second = segments[1].ordinals();
    let damaged: Vec<u64> =
        (second.start..600).filter(|&ordinal| !made.payload(ordinal).is_empty()).step_by(40).collect();
    damaged.iter().for_each(|&ordinal| made.flip(ordinal, 0));
    // The last segment is truncated after it was opened.
    let readers = readers(&made);
    let last = segments.last().unwrap();
    for reader in &readers[..4] {
        made.check(&reader.get_batch(&[last.ordinals().start]).unwrap());
    }
    OpenOptions::new().write(true).open(last.path()).unwrap().set_len(8192).unwrap();
    for reader in &readers[..4] {
        for first in &damaged {
            let ordinals: Vec<u64> = (*first..600).rev().collect();
            match reader.get_batch(&ordinals).unwrap_err() {
                ReadError::Store(StoreError::Sample { ordinal, .. }) => assert_eq!(ordinal, *first),
                ReadError::Unreadable { ordinal, .. } => {
                    assert_eq!(ordinal, *first);
                    assert!(last.ordinals().contains(first));
                }
                error => panic!("{error}"),
            }
            made.check(&reader.get_batch(&[second.start - 1, 0, 1, 0]).unwrap());
        }
    }
}
