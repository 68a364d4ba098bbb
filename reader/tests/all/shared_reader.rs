//! One reader for many threads, and epochs that are dropped before their end: no thread waits for another, and nothing
//! is left behind.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::thread;

use grainstore_format::to_usize;
use grainstore_reader::{EpochOptions, IoChoice, Reader};

use crate::common::{self, Made, ORDERS, Random, Shape};

fn made() -> Made {
    let mut random = Random(8);
    Shape::plain(4096, (0..400).map(|_| to_usize(random.below(2000))).collect()).write()
}

#[test]
fn threads_share_a_reader() {
    fn assert_shareable<T: Send + Sync>(_: &T) {}
    let made = made();
    let reader = made.reader(IoChoice::Auto);
    assert_shareable(&reader);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (made, reader) = (&made, &reader);
            scope.spawn(move || read_in_all_ways(made, reader, seed));
        }
    });
}

fn read_in_all_ways(made: &Made, reader: &Reader, seed: u64) {
    let mut random = Random(seed);
    let options = EpochOptions { seed, ..common::epoch_options(ORDERS[to_usize(seed) % 3]) };
    let mut epoch = reader.epoch(&options).unwrap();
    for _ in 0..50 {
        let ordinal = random.below(400);
        assert_eq!(reader.get(ordinal).unwrap().payload, made.payload(ordinal));
        made.check(&reader.get_batch(&[random.below(400), ordinal, random.below(400)]).unwrap());
        if let Some(batch) = epoch.next_batch() {
            made.check(&batch.unwrap());
        }
    }
}

#[test]
fn an_epoch_moves_to_another_thread() {
    let made = made();
    let epoch = made.reader(IoChoice::Auto).epoch(&common::epoch_options(ORDERS[0])).unwrap();
    let seen: usize = thread::spawn(move || epoch.map(|batch| batch.unwrap().len()).sum()).join().unwrap();
    assert_eq!(seen, 400);
}

#[test]
fn an_epoch_outlives_its_reader_and_a_batch_its_epoch() {
    let made = made();
    let mut epoch = made.reader(IoChoice::Auto).epoch(&common::epoch_options(ORDERS[0])).unwrap();
    let batch = epoch.next_batch().unwrap().unwrap();
    drop(epoch);
    made.check(&batch);
}

/// Files of a folder that this process has open.
#[cfg(target_os = "linux")]
fn open_files_in(folder: &std::path::Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    targets.filter(|target| target.starts_with(folder)).count()
}

#[test]
#[cfg(target_os = "linux")]
fn an_epoch_dropped_in_the_middle_leaves_nothing_behind() {
    let made = made();
    for taken in [0, 1, 5] {
        for order in ORDERS {
            let reader = made.reader(IoChoice::Auto);
            let options = EpochOptions { batch_size: 20.try_into().unwrap(), ..common::epoch_options(order) };
            let mut epoch = reader.epoch(&options).unwrap();
            for _ in 0..taken {
                made.check(&epoch.next_batch().unwrap().unwrap());
            }
            drop(epoch);
            assert_eq!(reader.get(1).unwrap().payload, made.payload(1));
        }
    }
    // Each read in flight would hold its file.
    assert_eq!(open_files_in(made.folder.path()), 0);
}
