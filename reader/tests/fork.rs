//! A process is forked while epochs and batches are in progress. The parent continues normally. The child gets an error
//! where it would have to wait for a thread or a ring of the parent, and reads by itself with the same reader.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Made, ORDERS, Random, Shape};
use grainstore_format::to_usize;
use grainstore_reader::plan::Order;
use grainstore_reader::{Batch, EngineChoice, EpochOptions, IoChoice, ReadError, Reader, ReaderOptions};

/// Seconds after which a child that hangs is killed.
const CHILD_PATIENCE_S: u32 = 60;
const WAYS: [(IoChoice, EngineChoice); 4] = [
    (IoChoice::Direct, EngineChoice::Auto),
    (IoChoice::Buffered, EngineChoice::Auto),
    (IoChoice::Buffered, EngineChoice::Pread),
    (IoChoice::Mapped, EngineChoice::Auto),
];

/// Small samples, and some that are read straight into their batches.
fn made() -> Made {
    let mut random = Random(8);
    let payload_len = |random: &mut Random| if random.below(10) == 0 { 150_000 } else { random.below(3000) };
    let payload_lens = (0..800).map(|_| to_usize(payload_len(&mut random))).collect();
    Shape { segment_size: 4 << 20, ..Shape::plain(4096, payload_lens) }.write()
}

fn reader(made: &Made, (io, engine): (IoChoice, EngineChoice)) -> Reader {
    Reader::open(made.path(), ReaderOptions { io, engine, threads: 3, ..ReaderOptions::default() }).unwrap()
}

fn options(order: Order) -> EpochOptions {
    let (batch_size, window_len) = (NonZeroUsize::new(40).unwrap(), 1 << 20);
    EpochOptions { batch_size, window_len, ..common::epoch_options(order) }
}

/// Forks; the child does `work` and ends with or without success. Returns the child.
fn fork(work: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child does only what the reader supports after a fork, allocates as glibc allows after a fork, and
    // ends without running anything of the test's process.
    let child = unsafe { libc::fork() };
    if child != 0 {
        return child;
    }
    // SAFETY: it only sets a timer.
    unsafe { libc::alarm(CHILD_PATIENCE_S) };
    let done = catch_unwind(AssertUnwindSafe(work));
    // SAFETY: it ends this process, and nothing else.
    unsafe { libc::_exit(i32::from(done.is_err())) }
}

/// Waits for a child to end: 0 is success.
fn status_of(child: libc::pid_t) -> i32 {
    assert!(child > 0, "no fork");
    let mut status = 0;
    // SAFETY: the status is written to a variable that is there.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(ended, child);
    status
}

/// The remaining samples of an epoch, whose payloads are checked.
fn rest(made: &Made, epoch: impl Iterator<Item = Result<Batch, ReadError>>) -> usize {
    let lens = epoch.map(|batch| {
        let batch = batch.unwrap();
        made.check(&batch);
        batch.len()
    });
    lens.sum()
}

fn read_in_all_ways(made: &Made, reader: &Reader) {
    made.check(&reader.get_batch(&[799, 3, 3, 500, 501, 502]).unwrap());
    for ordinal in 0..800 {
        assert!(reader.get(ordinal).unwrap().payload == made.payload(ordinal));
    }
    made.check(&reader.get_batch(&(0..800).rev().collect::<Vec<_>>()).unwrap());
    assert_eq!(rest(made, reader.epoch(&options(Order::Chunked)).unwrap()), 800);
}

#[test]
fn an_epoch_in_progress_ends_in_the_child_and_continues_in_the_parent() {
    let made = made();
    for way in WAYS {
        for order in ORDERS {
            for taken in [0, 1, 5] {
                let reader = reader(&made, way);
                let mut epoch = reader.epoch(&options(order)).unwrap();
                let held: Vec<Batch> = epoch.by_ref().take(taken).map(Result::unwrap).collect();
                let mut all = Some((reader, epoch, held));
                let child = fork(|| {
                    let (reader, mut epoch, held) = all.take().unwrap();
                    held.iter().for_each(|batch| made.check(batch));
                    assert!(matches!(epoch.next_batch(), Some(Err(ReadError::Forked))));
                    assert!(epoch.next_batch().is_none() && epoch.next_batch().is_none());
                    held.iter().for_each(|batch| made.check(batch));
                    drop(epoch);
                    drop(held);
                    drop(reader);
                });
                let (_reader, mut epoch, held) = all.unwrap();
                let seen: usize = held.iter().map(Batch::len).sum();
                assert_eq!(seen + rest(&made, &mut epoch), 800);
                held.iter().for_each(|batch| made.check(batch));
                assert_eq!(status_of(child), 0, "{way:?}, {order}, {taken} batches");
            }
        }
    }
}

#[test]
fn the_child_does_not_touch_the_cache_that_it_inherits_and_fills_its_own() {
    let made = made();
    for (io, engine) in [(IoChoice::Direct, EngineChoice::Auto), (IoChoice::Buffered, EngineChoice::Pread)] {
        for order in ORDERS {
            let cached = ReaderOptions { io, engine, threads: 3, cache_bytes: 64 << 20, ..ReaderOptions::default() };
            let reader = Reader::open(made.path(), cached).unwrap();
            let read = |reader: &Reader| {
                let mut epoch = reader.epoch(&options(order)).unwrap();
                assert_eq!(rest(&made, epoch.by_ref()), 800);
                epoch.stats().read_bytes
            };
            assert!(read(&reader) > 0);
            let mut inherited = Some(reader);
            let child = fork(|| {
                let reader = inherited.take().unwrap();
                assert!(read(&reader) > 0, "it has nothing yet");
                assert_eq!(read(&reader), 0);
                drop(reader);
            });
            let reader = inherited.unwrap();
            assert_eq!(read(&reader), 0, "the parent has what it had");
            assert_eq!(status_of(child), 0, "{io:?}, {order}");
        }
    }
}

#[test]
fn the_child_reads_for_itself_with_the_reader_that_it_inherits() {
    let made = made();
    for way in WAYS {
        let reader = reader(&made, way);
        // Idle engines, and memory that is registered with them.
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| made.check(&reader.get_batch(&(0..800).collect::<Vec<_>>()).unwrap()));
            }
        });
        let mut epoch = reader.epoch(&EpochOptions { followed: true, ..options(Order::Chunked) }).unwrap();
        made.check(&epoch.next_batch().unwrap().unwrap());
        let mut epoch = Some(epoch);
        let child = fork(|| {
            read_in_all_ways(&made, &reader);
            drop(epoch.take());
            read_in_all_ways(&made, &reader);
            let own = Reader::open(made.path(), ReaderOptions::default()).unwrap();
            read_in_all_ways(&made, &own);
        });
        read_in_all_ways(&made, &reader);
        assert_eq!(rest(&made, epoch.unwrap()), 760);
        assert_eq!(status_of(child), 0, "{way:?}");
        read_in_all_ways(&made, &reader);
    }
}

#[test]
fn a_prepared_next_epoch_stays_with_the_parent() {
    let made = made();
    let followed = |epoch| EpochOptions { epoch, followed: true, ..options(Order::Chunked) };
    let reader = reader(&made, WAYS[1]);
    assert_eq!(rest(&made, reader.epoch(&followed(0)).unwrap()), 800);
    let mut both = Some(reader);
    let child = fork(|| {
        let reader = both.take().unwrap();
        assert_eq!(rest(&made, reader.epoch(&followed(1)).unwrap()), 800);
        assert_eq!(rest(&made, reader.epoch(&followed(2)).unwrap()), 800);
        drop(reader);
    });
    assert_eq!(rest(&made, both.unwrap().epoch(&followed(1)).unwrap()), 800);
    assert_eq!(status_of(child), 0);
}

#[test]
fn a_process_may_be_forked_while_other_threads_read() {
    let made = made();
    let reader = reader(&made, WAYS[1]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..3 {
            let (made, reader, done) = (&made, &reader, &done);
            scope.spawn(move || {
                let mut random = Random(seed);
                while !done.load(Ordering::Relaxed) {
                    let ordinals: Vec<u64> = (0..5).map(|_| random.below(800)).collect();
                    made.check(&reader.get_batch(&ordinals).unwrap());
                }
            });
        }
        let mut statuses = Vec::new();
        for number in 0..30 {
            let mut epoch = reader.epoch(&options(ORDERS[number % 3])).unwrap();
            let batch = epoch.next_batch().unwrap().unwrap();
            statuses.push(status_of(fork(|| {
                made.check(&batch);
                drop(batch);
                drop(epoch);
                made.check(&reader.get_batch(&[7, 700, 70]).unwrap());
                assert!(reader.get(9).unwrap().payload == made.payload(9));
            })));
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(statuses, [0; 30]);
    });
}
