//! Data that are on a device when a reader is made, and in memory later: `auto` then maps them, and nothing else changes.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it could not run")]

use std::fs::{self, File};
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Range;
use std::path::Path;

use grainstore_reader::engine::IoMode;
use grainstore_reader::plan::Order;
use grainstore_reader::{EngineChoice, EpochOptions, IoChoice, Reader, ReaderOptions};
use rustix::fs::{Advice, fadvise};

use crate::common::{self, Made, ORDERS, Shape};

const COUNT: u64 = 3000;

fn made() -> Made {
    Shape { segment_size: 2 << 20, ..Shape::plain(64 << 10, vec![2000; 3000]) }.write()
}

/// A reader of a dataset that is not in memory; `None` where the system keeps it there.
fn opened_cold(made: &Made, options: ReaderOptions) -> Option<Reader> {
    // The system keeps pages that something else is using at that moment.
    for _ in 0..10 {
        for segment in fs::read_dir(made.path()).unwrap() {
            let file = File::open(segment.unwrap().path()).unwrap();
            file.sync_all().unwrap();
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        }
        let reader = Reader::open(made.path(), options.clone()).unwrap();
        if reader.io().mode != IoMode::Mapped {
            return Some(reader);
        }
    }
    eprintln!("the system keeps these files in memory, so there is nothing to test here");
    None
}

/// Whether a reader that is made now maps the files: the system may have given up what was read, or cannot be asked.
fn are_in_memory(made: &Made) -> bool {
    let are_there = made.reader(IoChoice::Auto).io().mode == IoMode::Mapped;
    if !are_there {
        eprintln!(
            "the system does not keep these files in memory, or does not say so: that they are mapped is not tested"
        );
    }
    are_there
}

fn read_all(made: &Made, reader: &Reader) {
    (0..COUNT).for_each(|ordinal| assert!(reader.get(ordinal).unwrap().payload == made.payload(ordinal)));
}

#[test]
fn the_epoch_after_the_one_that_read_the_data_is_mapped_and_the_same() {
    let made = made();
    for order in ORDERS {
        for followed in [false, true] {
            let Some(reader) = opened_cold(&made, ReaderOptions::default()) else { return };
            assert_eq!(reader.io().mode, IoMode::Buffered, "{}", reader.io());
            for number in 0..3 {
                let batch_size = NonZeroUsize::new(64).unwrap();
                let options = EpochOptions { epoch: number, batch_size, followed, ..common::epoch_options(order) };
                let mut epoch = reader.epoch(&options).unwrap();
                let mut read = Vec::new();
                for batch in epoch.by_ref() {
                    let batch = batch.unwrap();
                    made.check(&batch);
                    read.extend_from_slice(batch.ordinals());
                }
                let mode = if number == 0 { IoMode::Buffered } else { IoMode::Mapped };
                assert_eq!(epoch.stats().io, mode, "{order}, epoch {number}");
                if !are_in_memory(&made) {
                    return;
                }
                let plan = epoch.plan();
                assert!(read.into_iter().eq((0..COUNT).map(|position| plan.at(position))), "{order}, epoch {number}");
            }
            assert_eq!(reader.io().to_string(), "mapped: the segments have come into memory, on a local file system");
        }
    }
}

#[test]
fn an_epoch_under_way_goes_on_as_it_began() {
    let made = made();
    let Some(reader) = opened_cold(&made, ReaderOptions::default()) else { return };
    let mut before = reader.epoch(&common::epoch_options(Order::Chunked)).unwrap();
    made.check(&before.next_batch().unwrap().unwrap());
    read_all(&made, &reader);
    if !are_in_memory(&made) {
        return;
    }
    let after = reader.epoch(&common::epoch_options(Order::Chunked)).unwrap();
    assert_eq!(reader.io().mode, IoMode::Mapped);
    for batch in before.by_ref().chain(after) {
        made.check(&batch.unwrap());
    }
    assert_eq!(before.stats().io, IoMode::Buffered);
}

/// Reads samples in order, by `read`, which gets the first of every so many.
fn is_mapped_after_some(made: &Made, step: usize, read: impl Fn(&Reader, u64)) {
    let Some(reader) = opened_cold(made, ReaderOptions::default()) else { return };
    let mode_after = |ordinals: Range<u64>| {
        ordinals.step_by(step).for_each(|ordinal| read(&reader, ordinal));
        reader.io().mode
    };
    mode_after(0..COUNT);
    let mode = mode_after(0..COUNT);
    if !are_in_memory(made) {
        return;
    }
    assert_eq!(mode, IoMode::Mapped, "it is asked once more after all of them were read");
    assert_eq!(reader.mapped(COUNT - 1).unwrap().payload_len(), 2000);
}

#[test]
fn single_samples_are_mapped_after_some_of_them() {
    let made = made();
    is_mapped_after_some(&made, 1, |reader, ordinal| {
        assert!(reader.get(ordinal).unwrap().payload == made.payload(ordinal));
    });
}

#[test]
fn batches_are_mapped_after_some_of_them() {
    let made = made();
    is_mapped_after_some(&made, 50, |reader, ordinal| {
        let ordinals: Vec<u64> = (ordinal..ordinal + 50).collect();
        made.check(&reader.get_batch(&ordinals).unwrap());
    });
}

#[test]
fn single_reads_of_a_few_samples_bring_all_into_memory() {
    const READ: u64 = 60;
    const ROUNDS: u32 = 5000;
    let made = Shape::plain(64 << 10, vec![2000; 24_000]).write();
    if !are_in_memory(&made) {
        return;
    }
    let Some(reader) = opened_cold(&made, ReaderOptions::default()) else { return };
    if reader.io().mode != IoMode::Buffered {
        return eprintln!("this machine has no memory for the dataset: {}", reader.io());
    }
    let segment = reader.collection().segment_path(0).to_owned();
    let read_len = reader.collection().locate(READ).unwrap().offset;
    let mut rounds = 0;
    while reader.io().mode != IoMode::Mapped && rounds < ROUNDS {
        (0..READ).for_each(|ordinal| assert!(reader.get(ordinal).unwrap().payload == made.payload(ordinal)));
        // So that they have to be waited for again.
        let file = File::open(&segment).unwrap();
        fadvise(&file, 0, NonZeroU64::new(read_len), Advice::DontNeed).unwrap();
        rounds += 1;
    }
    assert_eq!(reader.io().mode, IoMode::Mapped, "after {rounds} rounds");
    assert!(reader.get(23_999).unwrap().payload == made.payload(23_999));
}

#[test]
fn a_dataset_that_was_replaced_meanwhile_is_read_from_the_files_that_are_open() {
    let made = made();
    let Some(reader) = opened_cold(&made, ReaderOptions::default()) else { return };
    // One of each file, so that all are open.
    (0..COUNT).step_by(500).for_each(|ordinal| assert!(reader.get(ordinal).unwrap().payload == made.payload(ordinal)));
    // Of the same lengths, and in memory: only their contents are others.
    let other = Shape { seed: 8, segment_size: 2 << 20, ..Shape::plain(64 << 10, vec![2000; 3000]) }.write();
    fs::rename(made.path(), made.folder.path().join("old.grain")).unwrap();
    fs::rename(other.path(), made.path()).unwrap();
    for _ in 0..3 {
        read_all(&made, &reader);
        reader.epoch(&common::epoch_options(Order::Chunked)).unwrap().for_each(|batch| made.check(&batch.unwrap()));
    }
    assert_eq!(reader.io().mode, IoMode::Buffered);
}

#[test]
fn what_was_asked_for_stays() {
    let made = made();
    let default = ReaderOptions::default;
    for options in [
        ReaderOptions { io: IoChoice::Buffered, ..default() },
        ReaderOptions { io: IoChoice::Direct, ..default() },
        ReaderOptions { cache_bytes: 1 << 20, ..default() },
        ReaderOptions { engine: EngineChoice::Pread, ..default() },
        ReaderOptions { dont_cache: true, ..default() },
    ] {
        let Some(reader) = opened_cold(&made, options) else { return };
        let mode = reader.io().mode;
        for _ in 0..3 {
            fs::read_dir(made.path()).unwrap().for_each(|file| drop(fs::read(file.unwrap().path()).unwrap()));
            read_all(&made, &reader);
            reader.epoch(&common::epoch_options(Order::Chunked)).unwrap().for_each(|batch| made.check(&batch.unwrap()));
        }
        assert_eq!(reader.io().mode, mode, "{}", reader.io());
    }
}

#[test]
fn a_file_system_in_memory_is_mapped_at_once() {
    let folder = Path::new("/dev/shm");
    let Ok(folder) = tempfile::tempdir_in(folder) else {
        eprintln!("there is no file system in memory at {}", folder.display());
        return;
    };
    let made = made();
    for file in fs::read_dir(made.path()).unwrap() {
        let file = file.unwrap();
        if let Err(error) = fs::copy(file.path(), folder.path().join(file.file_name())) {
            return eprintln!("the file system in memory has no room: {error}");
        }
    }
    let reader = Reader::open(folder.path(), ReaderOptions::default()).unwrap();
    assert_eq!(reader.io().to_string(), "mapped: the segments are in memory, on a local file system");
    read_all(&made, &reader);
}
