//! Everything that is written to a dataset is read back: by ordinal, by key, in batches of any order, and in every
//! order of an epoch, each sample once and at the position of the plan, with direct and buffered I/O. The datasets are
//! random; their samples have lengths around every limit: none, one byte, a chunk, several, eight and more.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it could not check")]

use std::num::NonZeroUsize;

use grainstore_format::{Alignment, to_usize};
use grainstore_reader::engine::IoMode;
use grainstore_reader::plan::{Order, OrderChoice};
use grainstore_reader::{EngineChoice, EpochOptions, IoChoice, Reader, ReaderOptions};
use proptest::prelude::*;

use crate::common::{self, Made, ORDERS, Random, Shape};

const CHUNK: usize = 4096;

fn payload_len() -> impl Strategy<Value = usize> {
    let edge = prop::sample::select(vec![0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5]);
    let lone = prop::sample::select(vec![8 * CHUNK - 1, 8 * CHUNK, 9 * CHUNK + 17]);
    prop_oneof![8 => 0..900_usize, 4 => edge, 1 => lone]
}

fn shape() -> impl Strategy<Value = Shape> {
    let alignments = [
        Alignment::PACKED,
        Alignment::multiple_of(8).unwrap(),
        Alignment::multiple_of(64).unwrap(),
        Alignment::multiple_of(4096).unwrap(),
        Alignment::NoEdges,
    ];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let segment_size = prop_oneof![Just(1 << 30), Just(20_000), 6_000..60_000_u64];
    let lens = prop::collection::vec(payload_len(), 1..90);
    (any::<u64>(), lens, flags, prop::sample::select(alignments.to_vec()), segment_size).prop_map(
        |(seed, payload_lens, (keyed, lz4, several_fields, attributes), alignment, segment_size)| Shape {
            seed,
            chunk_size: CHUNK as u64,
            payload_lens,
            keyed,
            lz4,
            several_fields,
            attributes,
            alignment,
            segment_size,
        },
    )
}

fn check_singles(made: &Made, reader: &Reader) {
    for (sample, ordinal) in made.samples.iter().zip(0..) {
        let found = reader.get(ordinal).unwrap();
        assert_eq!((found.ordinal, &found.payload), (ordinal, &sample.payload));
        let names: Vec<_> = reader.collection().schema().fields().iter().map(|field| field.name.clone()).collect();
        for (place, name) in names.iter().enumerate() {
            let whole = Some(0..sample.payload.len() as u64);
            let range = if sample.fields.is_empty() { &whole } else { &sample.fields[place] };
            assert_eq!(&found.fields()[place], range);
            let bytes = range.clone().map(|range| &sample.payload[to_usize(range.start)..to_usize(range.end)]);
            assert_eq!(found.field(name).unwrap(), bytes);
        }
        if sample.key.is_empty() {
            assert_eq!(reader.collection().key(ordinal).unwrap(), None);
        } else {
            let by_key = reader.get_by_key(&sample.key).unwrap().unwrap();
            assert_eq!((by_key.ordinal, by_key.payload), (ordinal, found.payload));
        }
        assert_eq!(reader.collection().attributes(ordinal).unwrap(), sample.attributes);
    }
}

fn check_batches(made: &Made, reader: &Reader, random: &mut Random) {
    let count = made.samples.len() as u64;
    assert!(reader.collection().locate_batch(&[0, count], &mut Vec::new()).is_err());
    for len in [0, 1, 7, 3 * count] {
        let ordinals: Vec<u64> = (0..len).map(|_| random.below(count)).collect();
        let batch = reader.get_batch(&ordinals).unwrap();
        assert_eq!((batch.ordinals(), batch.positions()), (&ordinals[..], &[][..]));
        made.check(&batch);
        let mut locations = Vec::new();
        reader.collection().locate_batch(&ordinals, &mut locations).unwrap();
        let each: Vec<_> = ordinals.iter().map(|&ordinal| reader.collection().locate(ordinal).unwrap()).collect();
        assert_eq!(locations, each);
        let asked: u64 = ordinals.iter().map(|&ordinal| made.payload(ordinal).len() as u64).sum();
        assert_eq!(batch.payload_bytes(), asked);
        if let Some(&ordinal) = ordinals.first() {
            let sample = reader.get(ordinal).unwrap();
            for (place, field) in reader.collection().schema().fields().iter().enumerate() {
                assert_eq!(batch.field(0, place).unwrap(), sample.field(&field.name).unwrap());
                assert_eq!(batch.field_named(0, &field.name).unwrap(), sample.field(&field.name).unwrap());
            }
        }
    }
}

fn check_epoch(made: &Made, reader: &Reader, options: &EpochOptions) {
    let mut epoch = reader.epoch(options).unwrap();
    let plan = epoch.plan().clone();
    let mut position = 0;
    let mut visited = Vec::new();
    let mut batch_count = 0;
    while let Some(batch) = epoch.next_batch() {
        let batch = batch.unwrap();
        batch_count += 1;
        assert_eq!(batch.positions().first(), Some(&position));
        let expected: Vec<u64> = (position..position + batch.len() as u64).map(|position| plan.at(position)).collect();
        assert_eq!(batch.ordinals(), expected);
        made.check(&batch);
        // In an epoch the payloads are back to back, so that payloads of equal length form an array.
        assert!((1..batch.len()).all(|i| batch.view(i - 1).end == batch.view(i).start));
        position += batch.len() as u64;
        visited.extend_from_slice(batch.ordinals());
    }
    assert_eq!(batch_count, epoch.len());
    visited.sort_unstable();
    assert!(visited.into_iter().eq(0..made.samples.len() as u64), "each sample once");
    let stats = epoch.stats();
    assert_eq!((stats.samples, stats.payload_bytes), (plan.len(), made.payload_bytes()));
    assert_eq!(stats.stored_bytes, reader.collection().stored_bytes().unwrap());
    assert!(stats.read_bytes >= stats.stored_bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_way_of_reading_returns_what_was_written(
        shape in shape(),
        seed: u64,
        batch_size in 1..40_usize,
        window_len in prop::sample::select(vec![0, 20_000, 100_000, 1 << 20]),
        lanes in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let made = shape.write();
        let lanes = lanes.map(|lanes| 1 + lanes.index(made.samples.len()) as u64);
        for io in [IoChoice::Direct, IoChoice::Buffered, IoChoice::Mapped] {
            let reader = made.reader(io);
            // The window must not be smaller than a chunk.
            let window_len = window_len.max(reader.collection().chunk_size().bytes());
            check_singles(&made, &reader);
            check_batches(&made, &reader, &mut Random(seed));
            for order in ORDERS.map(OrderChoice::Fixed).into_iter().chain([OrderChoice::Auto]) {
                let batch_size = NonZeroUsize::new(batch_size).unwrap();
                check_epoch(&made, &reader, &EpochOptions { order, seed, epoch: 2, window_len, lanes, batch_size, ..EpochOptions::default() });
            }
            // A loaded index gives the same answers.
            check_batches(&made, &reader, &mut Random(seed.wrapping_add(1)));
        }
    }
}

#[test]
fn a_dataset_with_more_segments_than_open_files_is_read() {
    let made = Shape { segment_size: 4096 + 600, ..Shape::plain(4096, vec![500; 700]) }.write();
    let reader = made.reader(IoChoice::Buffered);
    assert_eq!(reader.collection().segment_count(), 700);
    for order in ORDERS {
        check_epoch(&made, &reader, &common::epoch_options(order));
    }
    check_batches(&made, &reader, &mut Random(5));
    check_singles(&made, &reader);
}

#[test]
fn an_absent_key_is_none_and_an_ordinal_out_of_range_is_an_error() {
    let made = Shape::plain(4096, vec![10; 5]).write();
    let reader = made.reader(IoChoice::Auto);
    assert!(reader.get_by_key(b"class 0/9.jpg").unwrap().is_none());
    for error in [reader.get(5).unwrap_err(), reader.get_batch(&[0, u64::MAX, 5]).unwrap_err()] {
        assert_eq!(error.to_string(), "no sample 5: the dataset has 5, numbered from 0");
    }
    let sample = reader.get(1).unwrap();
    assert_eq!(sample.field("image").unwrap_err().to_string(), "no field \"image\" (there are: data)");
    let batch = reader.get_batch(&[1]).unwrap();
    assert_eq!(batch.field(0, 1).unwrap_err().to_string(), "no field \"1\" (there are: data)");
}

#[test]
fn lanes_that_do_not_suit_the_dataset_are_refused() {
    let made = Shape::plain(4096, vec![10; 5]).write();
    let reader = made.reader(IoChoice::Auto);
    let options = EpochOptions { lanes: Some(6), ..common::epoch_options(Order::Chunked) };
    let error = reader.epoch(&options).unwrap_err();
    assert_eq!(error.to_string(), "number of lanes is 6, expected 1 to 5 (one sample a lane)");
    assert_eq!(reader.epoch(&common::epoch_options(Order::Full)).unwrap().lanes(), None);
    assert_eq!(reader.epoch(&common::epoch_options(Order::Chunked)).unwrap().lanes(), Some(1));
}

#[test]
fn the_choice_of_io_is_reported_with_its_reason() {
    let made = Shape::plain(4096, vec![10; 5]).write();
    let auto = made.reader(IoChoice::Auto).io();
    assert_eq!(auto.to_string(), "mapped: the segments are in memory, on a local file system");
    for options in [
        ReaderOptions { dont_cache: true, ..ReaderOptions::default() },
        ReaderOptions { cache_bytes: 1 << 20, ..ReaderOptions::default() },
        ReaderOptions { engine: EngineChoice::Pread, ..ReaderOptions::default() },
    ] {
        let auto = Reader::open(made.path(), options).unwrap().io();
        assert_eq!(auto.mode, IoMode::Buffered);
        assert!(auto.why.contains("bytes of segments fit in half of"), "{auto}");
    }
    assert_eq!(made.reader(IoChoice::Buffered).io().to_string(), "buffered: it was requested");
    let reader = made.reader(IoChoice::Direct);
    match reader.notices().as_slice() {
        [] => assert_eq!(reader.io().to_string(), "direct: it was requested"),
        [notice] => {
            eprintln!("direct I/O is not checked here: {notice}");
            assert_eq!(reader.io().mode, IoMode::Buffered);
        }
        several => assert_eq!(several.len(), 1, "reported once"),
    }
}

#[test]
fn a_lone_segment_is_a_dataset() {
    let made = Shape::plain(4096, vec![700; 50]).write();
    let reader = Reader::open(made.path().join("00000.seg"), Default::default()).unwrap();
    check_epoch(&made, &reader, &common::epoch_options(Order::Chunked));
    check_singles(&made, &reader);
}
