//! Epochs that end, fail or are dropped leave no thread, no open file, no ring and no locked memory behind.
//!
//! The tests count resources of the whole process, so they run one at a time.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{Made, ORDERS, Random, Shape};
use grainstore_format::to_usize;
use grainstore_reader::plan::Order;
use grainstore_reader::{EngineChoice, EpochOptions, IoChoice, Reader, ReaderOptions};

/// The longest wait for threads and rings to end; only a failing test reaches it.
const PATIENCE: Duration = Duration::from_secs(20);

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The resources of this library in this process.
fn left_behind() -> BTreeSet<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let threads = names.filter(|name| name.starts_with("grain-"));
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
    let targets = targets.map(|target| target.display().to_string());
    let files = targets.filter(|target| target.contains("io_uring") || target.contains(".grain/"));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let locked = status.lines().filter(|line| line.starts_with("VmPin:") || line.starts_with("VmLck:"));
    let locked = locked.filter(|line| !line.contains("\t       0 kB")).map(str::to_owned);
    let threads = threads.enumerate().map(|(number, name)| format!("{} {number}", name.trim()));
    threads.chain(files).chain(locked.collect::<Vec<_>>()).collect()
}

fn assert_nothing_is_left(after: &str) {
    assert_left(after, BTreeSet::is_empty);
}

fn assert_left(after: &str, is_right: impl Fn(&BTreeSet<String>) -> bool) {
    let begin = Instant::now();
    loop {
        let left = left_behind();
        if is_right(&left) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{after}: {left:?}");
        thread::yield_now();
    }
}

/// Small samples, and some that are read straight into their batches.
fn made() -> Made {
    let mut random = Random(8);
    let payload_len = |random: &mut Random| if random.below(20) == 0 { 100_000 } else { random.below(3000) };
    let payload_lens = (0..600).map(|_| to_usize(payload_len(&mut random))).collect();
    Shape { segment_size: 500_000, ..Shape::plain(4096, payload_lens) }.write()
}

fn options(order: Order) -> EpochOptions {
    let batch_size = NonZeroUsize::new(32).unwrap();
    let window_len = 200 << 10;
    EpochOptions { batch_size, window_len, ..common::epoch_options(order) }
}

fn reader(made: &Made, io: IoChoice, engine: EngineChoice) -> Reader {
    Reader::open(made.path(), ReaderOptions { io, engine, ..ReaderOptions::default() }).unwrap()
}

#[test]
fn the_process_listing_shows_an_epoch_in_progress() {
    let _turn = turn();
    let made = made();
    let reader = reader(&made, IoChoice::Direct, EngineChoice::Auto);
    let mut epoch = reader.epoch(&options(Order::Chunked)).unwrap();
    epoch.next_batch().unwrap().unwrap();
    let seen = left_behind();
    for expected in ["grain-epoch", ".grain/"] {
        assert!(seen.iter().any(|seen| seen.contains(expected)), "{expected}: {seen:?}");
    }
    if epoch.stats().engine == "io_uring" {
        assert!(seen.iter().any(|seen| seen.contains("io_uring")), "{seen:?}");
        let registered = epoch.stats().registered_bytes;
        assert!(registered == 0 || seen.iter().any(|seen| seen.starts_with("VmPin")), "{registered}: {seen:?}");
    }
    drop((epoch, reader));
    assert_nothing_is_left("one epoch");
}

#[test]
fn an_epoch_dropped_after_any_batch_leaves_nothing() {
    let _turn = turn();
    let made = made();
    for (io, engine) in [
        (IoChoice::Direct, EngineChoice::Auto),
        (IoChoice::Buffered, EngineChoice::Pread),
        (IoChoice::Mapped, EngineChoice::Auto),
    ] {
        for order in ORDERS {
            for taken in 0..=19 {
                let reader = reader(&made, io, engine);
                let mut epoch = reader.epoch(&options(order)).unwrap();
                for _ in 0..taken {
                    made.check(&epoch.next_batch().unwrap().unwrap());
                }
                drop(reader);
                drop(epoch);
                assert_nothing_is_left(&format!("{io}, {order}, {taken} batches"));
            }
        }
    }
}

#[test]
fn a_followed_epoch_leaves_nothing_whenever_it_and_its_reader_are_dropped() {
    let _turn = turn();
    let made = made();
    for taken in [0, 1, 7, 19, 20] {
        for reader_first in [true, false] {
            let reader = reader(&made, IoChoice::Buffered, EngineChoice::Auto);
            let mut epoch = reader.epoch(&EpochOptions { followed: true, ..options(Order::Chunked) }).unwrap();
            let mut reader = Some(reader).filter(|_| !reader_first || taken < 20);
            for batch in 0..taken {
                assert_eq!(epoch.next_batch().is_some(), batch < 19);
                if batch == 3 && reader_first {
                    reader = None;
                }
            }
            let waits = taken == 20 && reader.is_some();
            drop(epoch);
            let waiting = |left: &BTreeSet<String>| left.iter().any(|name| name.starts_with("grain-epoch"));
            assert_left("the next epoch waits for its caller", |left| waiting(left) == waits);
            drop(reader);
            assert_nothing_is_left(&format!("{taken} batches, reader first: {reader_first}"));
        }
    }
}

#[test]
fn requesting_another_epoch_stops_the_prepared_one() {
    let _turn = turn();
    let made = made();
    let reader = reader(&made, IoChoice::Buffered, EngineChoice::Pread);
    let first = EpochOptions { followed: true, ..options(Order::Chunked) };
    assert_eq!(reader.epoch(&first).unwrap().count(), 19);
    assert!(left_behind().iter().any(|name| name.starts_with("grain-epoch")));
    let mut other = reader.epoch(&EpochOptions { epoch: 77, ..options(Order::Full) }).unwrap();
    // After the first epoch, only the memory that the reader keeps is left.
    other.next_batch().unwrap().unwrap();
    assert_left("another epoch", |left| left.iter().filter(|name| name.starts_with("grain-epoch")).count() == 1);
    drop((other, reader));
    assert_nothing_is_left("another epoch");
}

#[test]
fn an_epoch_that_fails_leaves_nothing_even_before_it_is_dropped() {
    let _turn = turn();
    let made = made();
    let ordinal = (300..).find(|&ordinal| !made.payload(ordinal).is_empty()).unwrap();
    made.flip(ordinal, 0);
    for order in ORDERS {
        let mut epoch = reader(&made, IoChoice::Direct, EngineChoice::Auto)
            .epoch(&EpochOptions { followed: true, ..options(order) })
            .unwrap();
        assert!(epoch.by_ref().last().unwrap().is_err());
        assert_nothing_is_left("an error");
        drop(epoch);
    }
}

#[test]
fn a_large_batch_frees_its_memory_although_its_reader_lives_on() {
    let _turn = turn();
    let made = Shape::plain(64 << 10, vec![2 << 20; 50]).write();
    for io in [IoChoice::Direct, IoChoice::Buffered] {
        let reader = reader(&made, io, EngineChoice::Auto);
        for _ in 0..2 {
            let batch = reader.get_batch(&(0..50).collect::<Vec<_>>()).unwrap();
            made.check(&batch);
            drop(batch);
            // The memory that the reader keeps for the next batch, and a huge page.
            let locked = locked_len();
            assert!(locked <= 18 << 20, "{io}: {locked} bytes of memory are locked");
        }
    }
}

/// Memory that the kernel has pinned, in bytes.
fn locked_len() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let lines = status.lines().filter_map(|line| line.strip_prefix("VmPin:"));
    lines.map(|line| line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024).sum()
}
