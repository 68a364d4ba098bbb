//! Epochs where the options, the files or the system's limits are wrong: the result is an error that names what and
//! where, after whole batches, or the same batches in another way.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it could not run")]

mod common;

use std::env;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::Read;
use std::num::NonZeroUsize;
use std::process::Command;

use common::{Made, ORDERS, Random, Shape};
use grainstore_format::to_usize;
use grainstore_reader::engine::IoMode;
use grainstore_reader::plan::Order;
use grainstore_reader::{EngineChoice, EpochOptions, IoChoice, ReadError, Reader, ReaderOptions};
use grainstore_store::StoreError;
use rustix::process::{Resource, Rlimit, geteuid, setrlimit};

const WAYS: [(IoChoice, EngineChoice); 4] = [
    (IoChoice::Direct, EngineChoice::Auto),
    (IoChoice::Direct, EngineChoice::Pread),
    (IoChoice::Buffered, EngineChoice::Auto),
    (IoChoice::Buffered, EngineChoice::Pread),
];

fn reader(made: &Made, (io, engine): (IoChoice, EngineChoice)) -> Reader {
    Reader::open(made.path(), ReaderOptions { io, engine, threads: 3, ..ReaderOptions::default() }).unwrap()
}

fn options(order: Order, batch_size: usize) -> EpochOptions {
    let batch_size = NonZeroUsize::new(batch_size).unwrap();
    EpochOptions { batch_size, window_len: 1 << 20, ..common::epoch_options(order) }
}

fn small() -> Made {
    let mut random = Random(8);
    Shape::plain(4096, (0..300).map(|_| to_usize(random.below(2000))).collect()).write()
}

/// PLN-7
#[test]
fn a_window_smaller_than_a_chunk_is_refused_in_the_chunked_order_and_no_other() {
    let made = small();
    let reader = made.reader(IoChoice::Buffered);
    for window_len in [0, 1, 2000, 4095] {
        for order in ORDERS {
            let epoch = reader.epoch(&EpochOptions { window_len, ..options(order, 10) });
            match (order, epoch) {
                (Order::Chunked, Err(error @ ReadError::SmallWindow { .. })) => {
                    let text = error.to_string();
                    let expected = format!("window is {window_len} bytes, expected 4096 or more: the size of a chunk");
                    assert_eq!(text, expected);
                }
                (Order::Full | Order::Sequential, Ok(epoch)) => {
                    assert_eq!(epoch.map(|batch| batch.unwrap().len()).sum::<usize>(), 300);
                }
                (order, result) => panic!("{order}, {window_len}: {result:?}"),
            }
        }
    }
}

#[test]
fn more_lanes_than_samples_are_refused() {
    let made = small();
    let reader = made.reader(IoChoice::Buffered);
    for lanes in [0, 301, u64::MAX] {
        let options = EpochOptions { lanes: Some(lanes), ..options(Order::Chunked, 10) };
        assert!(matches!(reader.epoch(&options), Err(ReadError::Plan(_))), "{lanes}");
    }
}

#[test]
fn a_queue_of_no_bytes_is_refused() {
    let made = small();
    let result = Reader::open(made.path(), ReaderOptions { queue_len: 0, ..ReaderOptions::default() });
    assert!(matches!(result, Err(error @ ReadError::NoQueue) if error.to_string().starts_with("queue is 0 bytes")));
}

#[test]
fn extremes_of_window_and_batch_give_every_sample_once() {
    let made = small();
    let reader = made.reader(IoChoice::Buffered);
    for order in ORDERS {
        for window_len in [5000, u64::MAX] {
            for batch_size in [1, 299, 301, usize::MAX] {
                let options = EpochOptions { window_len, ..options(order, batch_size) };
                let epoch = reader.epoch(&options).unwrap();
                assert_eq!(epoch.len(), 300_u64.div_ceil(batch_size as u64));
                let seen: usize =
                    epoch.map(|batch| batch.unwrap()).inspect(|batch| made.check(batch)).map(|batch| batch.len()).sum();
                assert_eq!(seen, 300, "{order}, window {window_len}, batches of {batch_size}");
            }
        }
    }
}

/// 24 MB in three segments: more than the read-ahead and the queue hold.
fn large() -> Made {
    Shape { segment_size: 8 << 20, ..Shape::plain(64 << 10, vec![30_000; 800]) }.write()
}

#[test]
fn a_file_cut_while_an_epoch_runs_is_reported_with_its_byte_range_after_whole_batches() {
    for way in WAYS {
        for order in ORDERS {
            let made = large();
            let reader = reader(&made, way);
            let mut epoch = reader.epoch(&options(order, 20)).unwrap();
            let plan = epoch.plan().clone();
            made.check(&epoch.next_batch().unwrap().unwrap());
            let last = reader.collection().member(0).unwrap().segments().last().unwrap();
            let cut = 1 << 20;
            // In other orders the file may be opened only now, and the error is about its length.
            made.check(&reader.get_batch(&[last.ordinals().start]).unwrap());
            OpenOptions::new().write(true).open(last.path()).unwrap().set_len(cut).unwrap();
            let mut position = 20;
            let error = loop {
                match epoch.next_batch().unwrap() {
                    Ok(batch) => {
                        assert_eq!(batch.positions().first(), Some(&position));
                        made.check(&batch);
                        position += 20;
                    }
                    Err(error) => break error,
                }
            };
            let ReadError::Unreadable { ordinal, key: Some(_), .. } = error else { panic!("{error}") };
            assert!(last.ordinals().contains(&ordinal), "{way:?}, {order}: sample {ordinal}");
            assert!((position..position + 20).any(|position| plan.at(position) == ordinal));
            let cause = error.source().unwrap().to_string();
            let expected = format!("{}: file ends at {cut}, wanted bytes ", last.path().display());
            assert!(cause.starts_with(&expected), "{cause}");
            assert!(epoch.next_batch().is_none());
        }
    }
}

#[test]
fn a_damaged_sample_in_the_middle_is_reported_after_the_batches_before_it() {
    let made = large();
    made.flip(411, 29_999);
    for way in WAYS {
        for order in ORDERS {
            for batch_size in [1, 7] {
                let mut epoch = reader(&made, way).epoch(&options(order, batch_size)).unwrap();
                let plan = epoch.plan().clone();
                let position = (0..800).find(|&position| plan.at(position) == 411).unwrap();
                for _ in 0..position / batch_size as u64 {
                    made.check(&epoch.next_batch().unwrap().unwrap());
                }
                let error = epoch.next_batch().unwrap().unwrap_err();
                assert!(matches!(error, ReadError::Store(StoreError::Sample { ordinal: 411, .. })), "{error}");
                assert!(epoch.next_batch().is_none());
            }
        }
    }
}

/// Runs one test of this file again in a separate process, since limits apply to the whole process.
fn in_a_process_of_its_own(name: &str, mark: &str, wrapper: &[&str]) {
    let this = env::current_exe().unwrap();
    let mut command = match wrapper {
        [] => Command::new(this),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).arg(this);
            command
        }
    };
    match command.args(["--exact", name, "--nocapture"]).env(mark, "1").output() {
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            eprintln!("{stderr}");
            assert!(output.status.success(), "{stderr}");
        }
        Err(error) => eprintln!("{wrapper:?}: {error}: not tested"),
    }
}

fn limit(resource: Resource, len: u64) {
    setrlimit(resource, Rlimit { current: Some(len), maximum: Some(len) }).unwrap();
}

#[test]
fn epochs_with_little_locked_memory_are_right_and_report_it() {
    const NAME: &str = "epochs_with_little_locked_memory_are_right_and_report_it";
    const MARK: &str = "GRAINSTORE_TEST_LITTLE_LOCKED_MEMORY";
    if env::var_os(MARK).is_some() {
        return read_with_little_locked_memory();
    }
    // The superuser may lock any amount of memory, unless the test removes this capability.
    let wrapper: &[&str] = &["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"];
    in_a_process_of_its_own(NAME, MARK, if geteuid().is_root() { wrapper } else { &[] });
}

fn read_with_little_locked_memory() {
    let made = large();
    // Enough for a ring, or not even for one.
    for memlock_len in [1 << 20, 0] {
        limit(Resource::Memlock, memlock_len);
        for io in [IoChoice::Direct, IoChoice::Buffered] {
            let reader = reader(&made, (io, EngineChoice::Auto));
            let mut epoch = reader.epoch(&options(Order::Chunked, 20)).unwrap();
            let seen: usize =
                epoch.by_ref().map(Result::unwrap).inspect(|batch| made.check(batch)).map(|batch| batch.len()).sum();
            assert_eq!(seen, 800);
            made.check(&reader.get_batch(&[1, 500, 799]).unwrap());
            let stats = epoch.stats();
            let notices = reader.notices();
            eprintln!("{memlock_len} bytes: {}, {:?}, {notices:?}", stats.engine, stats.remarks);
            match stats.engine {
                "io_uring" => {
                    assert!(stats.remarks.iter().any(|remark| remark.contains("memory is not registered")));
                    assert_eq!(stats.registered_bytes, 0);
                }
                _ => assert!(notices.iter().any(|notice| notice.contains("io_uring")), "{notices:?}"),
            }
        }
    }
}

#[test]
fn a_dataset_of_many_segments_is_read_with_few_open_files() {
    const NAME: &str = "a_dataset_of_many_segments_is_read_with_few_open_files";
    const MARK: &str = "GRAINSTORE_TEST_FEW_FILES";
    if env::var_os(MARK).is_some() {
        return read_with_few_files();
    }
    in_a_process_of_its_own(NAME, MARK, &[]);
}

fn read_with_few_files() {
    let made = Shape { segment_size: 60_000, ..Shape::plain(4096, vec![5000; 1100]) }.write();
    limit(Resource::Nofile, 64);
    for way in WAYS.into_iter().chain([(IoChoice::Auto, EngineChoice::Auto), (IoChoice::Mapped, EngineChoice::Auto)]) {
        let reader = reader(&made, way);
        assert!(reader.collection().segment_count() >= 100);
        for order in ORDERS {
            let epoch = reader.epoch(&options(order, 20)).unwrap();
            let seen: usize =
                epoch.map(Result::unwrap).inspect(|batch| made.check(batch)).map(|batch| batch.len()).sum();
            assert_eq!(seen, 1100, "{way:?}, {order}");
        }
        made.check(&reader.get_batch(&(0..1100).rev().collect::<Vec<_>>()).unwrap());
        (0..1100).step_by(7).for_each(|ordinal| assert!(reader.get(ordinal).unwrap().payload == made.payload(ordinal)));
    }
}

#[test]
fn many_open_samples_share_few_open_files() {
    const NAME: &str = "many_open_samples_share_few_open_files";
    const MARK: &str = "GRAINSTORE_TEST_OPEN_SAMPLES";
    if env::var_os(MARK).is_some() {
        return open_many_samples();
    }
    in_a_process_of_its_own(NAME, MARK, &[]);
}

fn open_many_samples() {
    let made = Shape::plain(4096, vec![2 << 20, 10]).write();
    limit(Resource::Nofile, 64);
    for io in [IoChoice::Auto, IoChoice::Buffered, IoChoice::Mapped] {
        let reader = reader(&made, (io, EngineChoice::Pread));
        let open: Vec<_> = (0..200).map(|_| reader.open_sample(0, None).unwrap().unwrap()).collect();
        let streams: Vec<_> = (0..200).map(|_| reader.stream(0).unwrap()).collect();
        assert!(open.iter().all(|file| file.file_len() == 2 << 20), "{io}");
        for mut stream in streams.into_iter().take(2) {
            let mut payload = Vec::new();
            stream.read_to_end(&mut payload).unwrap();
            assert!(payload == made.payload(0), "{io}");
        }
    }
}

#[test]
fn a_default_that_cannot_map_files_reads_them() {
    const NAME: &str = "a_default_that_cannot_map_files_reads_them";
    const MARK: &str = "GRAINSTORE_TEST_LITTLE_ADDRESS_SPACE";
    if env::var_os(MARK).is_some() {
        return read_with_little_address_space();
    }
    in_a_process_of_its_own(NAME, MARK, &[]);
}

fn read_with_little_address_space() {
    const SEGMENT_LEN: u64 = 400 << 20;
    let shape = Shape { segment_size: SEGMENT_LEN, ..Shape::plain(1 << 20, vec![2 << 20; 250]) };
    let made = shape.write();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let used_kib = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB")).unwrap();
    let used = used_kib.trim().parse::<u64>().unwrap() << 10;
    // Room for one of the segments and some memory, then for none.
    for (room, mode) in [(SEGMENT_LEN + (200 << 20), IoMode::Mapped), (SEGMENT_LEN / 2, IoMode::Buffered)] {
        limit(Resource::As, used + room);
        let reader = Reader::open(made.path(), ReaderOptions::default()).unwrap();
        assert_eq!((reader.io().mode, reader.collection().segment_count()), (mode, 2));
        for ordinal in [0, 249, 100] {
            assert!(reader.get(ordinal).unwrap().payload == made.payload(ordinal));
        }
        made.check(&reader.get_batch(&[249, 0, 248]).unwrap());
        let options = EpochOptions { window_len: 8 << 20, ..options(Order::Full, 2) };
        let batches = reader.epoch(&options).unwrap().map(Result::unwrap).inspect(|batch| made.check(batch));
        assert_eq!(batches.map(|batch| batch.len()).sum::<usize>(), 250);
    }
}

#[test]
fn an_epoch_is_refused_if_no_thread_can_be_started() {
    const NAME: &str = "an_epoch_is_refused_if_no_thread_can_be_started";
    const MARK: &str = "GRAINSTORE_TEST_NO_THREADS";
    if env::var_os(MARK).is_some() {
        let made = small();
        // The main thread of the test, and this one.
        limit(Resource::Nproc, 1);
        let reader = Reader::open(made.path(), ReaderOptions::default()).unwrap();
        match reader.epoch(&options(Order::Full, 10)) {
            Err(ReadError::Thread { .. }) => {}
            Ok(_) => eprintln!("threads are not limited here: not tested"),
            Err(error) => panic!("{error}"),
        }
        return;
    }
    let wrapper: &[&str] = &["setpriv", "--reuid=65534", "--clear-groups"];
    if !geteuid().is_root() {
        return in_a_process_of_its_own(NAME, MARK, &[]);
    }
    in_a_process_of_its_own(NAME, MARK, wrapper);
}
