//! An epoch that skips damaged samples continues past them: batches are shorter and report it, every rank returns the
//! same number of batches, and no damaged byte is returned.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use grainstore_format::to_usize;
use grainstore_reader::plan::Tail;
use grainstore_reader::{EpochOptions, IoChoice, OnDamage, ReadError, Reader, ReaderOptions};
use grainstore_store::{Dataset, StoreError};

use crate::common::{self, Made, ORDERS, Random, Shape};

const WORLD: u64 = 3;

/// Small samples and some large ones, raw and LZ4, in several segments.
fn made() -> Made {
    let mut random = Random(31);
    let len = |random: &mut Random| if random.below(40) == 0 { 70_000 } else { 1 + random.below(900) };
    let payload_lens = (0..1000).map(|_| to_usize(len(&mut random))).collect();
    Shape { lz4: true, segment_size: 150_000, ..Shape::plain(4096, payload_lens) }.write()
}

/// Reads an epoch with all ranks; returns the skipped samples.
fn run(made: &Made, reader: &Reader, options: &EpochOptions) -> BTreeSet<u64> {
    let mut skipped = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for rank in 0..WORLD {
        let options = EpochOptions { rank, world: WORLD, on_damage: OnDamage::Skip, ..options.clone() };
        let steps: Vec<_> = reader.plan(&options).unwrap().steps(0).collect();
        let mut epoch = reader.epoch(&options).unwrap();
        let mut skipped_count = 0;
        for step in &steps {
            let batch = epoch.next_batch().unwrap().unwrap();
            made.check(&batch);
            // Together, the samples of all ranks are the step of the plan, in its order.
            let delivered = batch.positions().iter().copied().zip(batch.ordinals().iter().copied());
            let lacking = batch.skipped().iter().map(|sample| (sample.position, sample.ordinal));
            let mut all: Vec<(u64, u64)> = delivered.chain(lacking).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(step.positions.zip(step.ordinals.iter().copied())));
            for sample in batch.skipped() {
                let named = match &*sample.error {
                    ReadError::Unreadable { ordinal, .. } | ReadError::Store(StoreError::Sample { ordinal, .. }) => {
                        *ordinal
                    }
                    other => panic!("{other}"),
                };
                assert_eq!(named, sample.ordinal);
                skipped.insert(sample.ordinal);
                skipped_count += 1;
            }
            seen.extend(batch.ordinals().iter().copied());
        }
        assert!(epoch.next_batch().is_none());
        assert_eq!(epoch.stats().skipped_samples, skipped_count);
    }
    assert!(seen.is_disjoint(&skipped));
    assert!(options.tail == Tail::Drop || seen.len() + skipped.len() == 1000);
    skipped
}

fn each_way(made: &Made, check: impl Fn(&Reader, &EpochOptions)) {
    for io in [IoChoice::Buffered, IoChoice::Direct, IoChoice::Mapped] {
        let reader = made.reader(io);
        for order in ORDERS {
            for tail in [Tail::Drop, Tail::Short, Tail::Pad] {
                let batch_size = NonZeroUsize::new(20).unwrap();
                check(&reader, &EpochOptions { batch_size, lanes: Some(6), tail, ..common::epoch_options(order) });
            }
        }
    }
}

#[test]
fn three_ranks_continue_past_flipped_bits_in_several_segments() {
    let made = made();
    let dataset = Dataset::open(made.path()).unwrap();
    assert!(dataset.segments().len() >= 4);
    // The first and the last sample of each segment, one in between, and a large one.
    let of_segment = |segment: &grainstore_store::Segment| {
        let ordinals = segment.ordinals();
        [ordinals.start, (ordinals.start + ordinals.end) / 2, ordinals.end - 1]
    };
    let mut broken: BTreeSet<u64> = dataset.segments().iter().take(3).flat_map(of_segment).collect();
    broken.insert((0..1000).find(|ordinal| dataset.locate(*ordinal).unwrap().stored_len > 64 << 10).unwrap());
    broken.iter().for_each(|ordinal| made.flip(*ordinal, 0));
    each_way(&made, |reader, options| {
        let skipped = run(&made, reader, options);
        assert!(skipped.is_subset(&broken) && (options.tail == Tail::Drop || skipped == broken), "{options:?}");
        // Without skipping, the epoch ends with one of them.
        let mut epoch = reader.epoch(options).unwrap();
        let error = epoch.by_ref().find_map(Result::err).unwrap();
        assert!(matches!(error, ReadError::Store(StoreError::Sample { ordinal, .. }) if broken.contains(&ordinal)));
    });
}

#[test]
fn a_failed_read_loses_only_the_samples_that_cannot_be_read() {
    let made = made();
    let path = Dataset::open(made.path()).unwrap().segments()[1].path().to_owned();
    // With a cache, whole extents are read for single samples.
    for (io, cache_bytes) in
        [(IoChoice::Buffered, 0), (IoChoice::Direct, 0), (IoChoice::Buffered, 1 << 20), (IoChoice::Direct, 1 << 20)]
    {
        let whole = std::fs::read(&path).unwrap();
        for order in ORDERS {
            let reader =
                Reader::open(made.path(), ReaderOptions { io, cache_bytes, ..ReaderOptions::default() }).unwrap();
            let dataset = reader.collection().clone();
            let second = 1;
            // The file is truncated after it was opened.
            let in_second = |ordinal: &u64| dataset.locate(*ordinal).unwrap().segment == second;
            let ordinals: Vec<u64> = (0..1000).filter(in_second).collect();
            reader.get(ordinals[0]).unwrap();
            let cut = dataset.locate(ordinals[ordinals.len() / 2]).unwrap().offset + 1;
            std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();
            let lost = |ordinal: &&u64| {
                let location = dataset.locate(**ordinal).unwrap();
                location.offset + location.stored_len > cut
            };
            let expected: BTreeSet<u64> = ordinals.iter().filter(lost).copied().collect();
            let options = EpochOptions { lanes: Some(6), ..common::epoch_options(order) };
            assert_eq!(run(&made, &reader, &options), expected, "{order}");
            assert_eq!(run(&made, &reader, &options), expected, "{order}, once more");
            drop(reader);
            std::fs::write(&path, &whole).unwrap();
        }
    }
}

#[test]
fn a_missing_file_ends_the_epoch_even_if_damage_is_skipped() {
    let made = made();
    std::fs::remove_file(made.path().join("00001.seg")).unwrap();
    let reader = made.reader(IoChoice::Buffered);
    let options = EpochOptions { on_damage: OnDamage::Skip, ..EpochOptions::default() };
    let error = reader.epoch(&options).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.ends_with("00001.seg: no such file or directory"), "{error}");
}
