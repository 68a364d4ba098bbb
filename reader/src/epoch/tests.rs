//! Epochs over a hostile engine: reads complete in any order, some late, and one of them fails, never completes, or
//! panics.

use std::collections::HashSet;
use std::error::Error;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, Weak};

use grainstore_format::{Alignment, ChunkSize, Geometry};
use grainstore_store::{Collection, Dataset};
use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
use tempfile::TempDir;

use super::*;
use crate::engine::{self, Completion, Engine, EngineError, EngineStats, Failed, IoMode, ReadRequest, Wait, read_now};
use crate::engine_choice::EngineChoice;
use crate::engine_pool::{EnginePool, EngineSpec};
use crate::open_files::{OpenFiles, Opening};
use crate::plan::OrderChoice;
use crate::read_timeout::ReadTimeout;
use crate::{Reader, ReaderOptions};

mod bad_byte;
mod schedule_order;

const EIO: i32 = 5;
const ORDERS: [Order; 3] = [Order::Chunked, Order::Full, Order::Sequential];
/// The longest wait; only a failing test reaches it.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// What happens to one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    Fails,
    NeverComesBack,
    Panics,
    Refused,
}

/// Performs each read at once, and returns completions in random order, some of them late.
struct Hostile {
    trouble: Trouble,
    /// The number of the read that has the trouble.
    troubled: usize,
    seen: Arc<EngineLog>,
    held: Vec<Completion>,
    lost_count: usize,
    random: u64,
    /// A byte of a file that no read returns.
    bad_byte: Option<(PathBuf, u64)>,
}

/// What the engine has done.
#[derive(Default)]
struct EngineLog {
    read_count: AtomicUsize,
    /// Times in a row that there was nothing to return.
    vain_count: AtomicUsize,
    /// The read that had the trouble.
    troubled: Mutex<Option<(PathBuf, Range<u64>)>>,
}

impl Hostile {
    /// Lets a read fail at its start.
    fn hold_failure(&mut self, request: ReadRequest) {
        let range = request.range();
        let failed_at = range.start;
        let error = engine::FileError::Io { path: request.file.path().into(), range, failed_at, source: injected() };
        let result = Err(Failed { error, buffer: request.buffer });
        self.held.push(Completion { token: request.token, result });
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        to_usize(self.random % bound as u64)
    }
}

impl Engine for Hostile {
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError> {
        let number = self.seen.read_count.fetch_add(1, SeqCst);
        let path = request.file.path().to_owned();
        let range = request.range();
        if self.bad_byte.as_ref().is_some_and(|(bad_path, bad)| *bad_path == path && range.contains(bad)) {
            self.hold_failure(request);
            return Ok(());
        }
        if number != self.troubled || self.trouble == Trouble::None {
            self.held.push(read_now(request));
            return Ok(());
        }
        *self.seen.troubled.lock().unwrap() = Some((path, range));
        match self.trouble {
            Trouble::Panics => panic!("as the test wants"),
            Trouble::Refused => return Err(EngineError::Broken { engine: "hostile", source: injected() }),
            Trouble::NeverComesBack => self.lost_count += 1,
            Trouble::Fails | Trouble::None => self.hold_failure(request),
        }
        Ok(())
    }

    fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        // A wait may be shorter than requested. Where a short timeout is tested, only the troubled read may reach it.
        let least = usize::from(self.trouble == Trouble::NeverComesBack);
        let count = self.below(6).max(least).max(wait.count(self.held.len()).min(least)).min(self.held.len());
        let vain_count = if count == 0 { self.seen.vain_count.load(SeqCst) + 1 } else { 0 };
        self.seen.vain_count.store(vain_count, SeqCst);
        for _ in 0..count {
            let place = self.below(self.held.len());
            out.push(self.held.swap_remove(place));
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.held.len() + self.lost_count
    }

    fn stats(&self) -> EngineStats {
        EngineStats { request_count: self.seen.read_count.load(SeqCst) as u64, ..EngineStats::default() }
    }

    fn name(&self) -> &'static str {
        "hostile"
    }
}

fn injected() -> io::Error {
    io::Error::from_raw_os_error(EIO)
}

/// A dataset, and an epoch over the hostile engine.
struct MixedDataset {
    folder: TempDir,
    payloads: Vec<Vec<u8>>,
}

impl MixedDataset {
    /// Small samples and large ones, and some of `empty_count` in a row that have no bytes, in several segments.
    fn new(empty_count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let len = |i: usize| match i % 40 {
            7 => 90_000 + i,
            place if place >= 40 - empty_count => 0,
            _ => 200 + i * 37 % 3000,
        };
        let byte = |i: usize, at: usize| u8::try_from((at * 7 + i * 13) % 256).unwrap();
        let payloads: Vec<Vec<u8>> = (0..400).map(|i| (0..len(i)).map(|at| byte(i, at)).collect()).collect();
        let geometry =
            Geometry { chunk_size: ChunkSize::new(4096).unwrap(), alignment: Alignment::PACKED, hash_seed: 1 };
        let options =
            WriterOptions { geometry, segment_size: 300_000, jobs: NonZeroUsize::new(1), ..WriterOptions::default() };
        let mut writer = DatasetWriter::create(folder.path().join("made"), options).unwrap();
        for (i, payload) in payloads.iter().enumerate() {
            writer.write(Sample::new(format!("{i}"), payload.clone())).unwrap();
        }
        writer.finish().unwrap();
        Self { folder, payloads }
    }

    fn dataset(&self) -> Dataset {
        Dataset::open(self.folder.path().join("made")).unwrap()
    }

    fn epoch(&self, mode: IoMode, options: &EpochOptions, engine: Hostile, timeout: Duration) -> Epoch {
        self.epoch_with(mode, options, engine, timeout, None)
    }

    fn epoch_with(
        &self,
        mode: IoMode,
        options: &EpochOptions,
        engine: Hostile,
        timeout: Duration,
        cache: Option<Arc<Cache>>,
    ) -> Epoch {
        let dataset = Collection::from(self.dataset());
        let extents = Reader::new(dataset.clone(), ReaderOptions::default()).unwrap().extents().unwrap();
        let open_files =
            Arc::new(OpenFiles::new(dataset.clone(), Opening { mode, dont_cache: false, must_map: false }));
        let threads = NonZeroUsize::MIN;
        let engines = EnginePool::new(EngineSpec { mode, choice: EngineChoice::Pread, threads, queue_len: 1 }).unwrap();
        let timeout = ReadTimeout::new(timeout);
        let next = Arc::default();
        let inputs = EpochInputs {
            dataset: &dataset,
            open_files: &open_files,
            extents: Arc::clone(&extents),
            engines: &engines,
            timeout,
            pool: &Arc::new(engine::BufferPool::new(64 << 20)),
            cache,
            next: &next,
        };
        let mut series = EpochSeries::new(&dataset, extents, options).unwrap();
        let plan = series.next().unwrap().unwrap();
        let thread = EpochThread::start(options, inputs, Box::new(engine), series, plan.clone()).unwrap();
        Epoch::of_thread(plan, thread, None)
    }

    /// The batches before the first that has a sample of these bytes of a file, and the position of that sample.
    fn batches_before(&self, plan: &Plan, path: &Path, range: &Range<u64>) -> (u64, u64) {
        let dataset = self.dataset();
        let is_in = |position: &u64| {
            let location = dataset.locate(plan.at(*position)).unwrap();
            let file = dataset.segments()[location.segment].path();
            file == path && range.contains(&location.offset)
        };
        let position = (0..plan.len()).find(is_in).unwrap();
        (position / BATCH_SIZE as u64, position)
    }

    fn check(&self, plan: &Plan, batch: &Batch) {
        for (i, ordinal) in batch.ordinals().iter().enumerate() {
            assert_eq!(*ordinal, plan.at(batch.positions()[i]));
            assert!(batch.payload(i) == self.payloads[to_usize(*ordinal)], "sample {ordinal}");
        }
    }
}

const BATCH_SIZE: usize = 10;

fn options(order: Order) -> EpochOptions {
    let batch_size = NonZeroUsize::new(BATCH_SIZE).unwrap();
    // A small window, so that reads are made from the first batch to the last.
    let order = OrderChoice::Fixed(order);
    let lanes = Some(5);
    EpochOptions { order, seed: 3, window_len: 100_000, lanes, batch_size, ..EpochOptions::default() }
}

fn hostile(trouble: Trouble, troubled: usize) -> (Hostile, Arc<EngineLog>) {
    let seen = Arc::new(EngineLog::default());
    let random = 0x9E37_79B9_7F4A_7C15 ^ (troubled as u64 + 1);
    (
        Hostile { trouble, troubled, seen: Arc::clone(&seen), held: Vec::new(), lost_count: 0, random, bad_byte: None },
        seen,
    )
}

/// Runs an epoch to its end or its first error; returns the batches.
fn batches(made: &MixedDataset, epoch: &mut Epoch) -> (u64, Option<ReadError>) {
    let plan = epoch.plan().clone();
    let mut position = 0;
    let mut count = 0;
    loop {
        match epoch.next_batch() {
            Some(Ok(batch)) => {
                assert_eq!(batch.positions().first(), Some(&position));
                made.check(&plan, &batch);
                position += batch.len() as u64;
                count += 1;
            }
            Some(Err(error)) => return (count, Some(error)),
            None => {
                assert_eq!(position, plan.len());
                return (count, None);
            }
        }
    }
}

/// Runs epochs of every kind, with the trouble at several reads from the first to the last.
fn each_trouble(
    trouble: Trouble,
    timeout: Duration,
    check: impl Fn(&MixedDataset, &Plan, &EngineLog, u64, Option<ReadError>),
) {
    let made = MixedDataset::new(0);
    for order in ORDERS {
        let (engine, seen) = hostile(Trouble::None, 0);
        let mut epoch = made.epoch(IoMode::Buffered, &options(order), engine, LONG);
        assert!(batches(&made, &mut epoch).1.is_none());
        let read_count = seen.read_count.load(SeqCst);
        assert!(read_count > 20, "{order}: {read_count}");
        for troubled in (0..read_count).step_by(read_count / 8).chain([read_count - 1]) {
            for mode in [IoMode::Buffered, IoMode::Direct] {
                let (engine, seen) = hostile(trouble, troubled);
                let mut epoch = made.epoch(mode, &options(order), engine, timeout);
                let plan = epoch.plan().clone();
                let (count, error) = batches(&made, &mut epoch);
                check(&made, &plan, &seen, count, error);
                assert!(epoch.next_batch().is_none() && epoch.next_batch().is_none(), "it ends after an error");
            }
        }
    }
}

#[test]
fn reads_that_complete_late_and_in_any_order_give_the_batches_of_the_plan() {
    let made = MixedDataset::new(12);
    for mode in [IoMode::Buffered, IoMode::Direct, IoMode::Mapped] {
        for order in ORDERS {
            for seed in 0..8 {
                let options = EpochOptions { seed, lanes: Some(1 + seed % 7), ..options(order) };
                let (engine, _) = hostile(Trouble::None, to_usize(seed));
                let (count, error) = batches(&made, &mut made.epoch(mode, &options, engine, LONG));
                assert!(error.is_none() && count == 40, "{error:?}");
            }
        }
    }
}

#[test]
fn a_read_that_fails_is_reported_with_its_byte_range_after_the_batches_before_it() {
    each_trouble(Trouble::Fails, LONG, |made, plan, seen, count, error| {
        let (path, range) = seen.troubled.lock().unwrap().clone().unwrap();
        let (before, position) = made.batches_before(plan, &path, &range);
        assert_eq!(count, before);
        let Some(ReadError::Unreadable { ordinal, key: Some(key), source }) = error else { panic!("{error:?}") };
        assert_eq!((ordinal, key), (plan.at(position), plan.at(position).to_string().into_bytes()));
        let (path, start, end) = (path.display(), range.start, range.end);
        let expected = format!("{path}: cannot read bytes {start}..{end}, failed at {start}");
        assert_eq!(source.to_string(), expected);
        let cause: &io::Error = source.source().unwrap().downcast_ref().unwrap();
        assert_eq!(cause.raw_os_error(), Some(EIO));
    });
}

#[test]
fn a_read_that_never_completes_is_reported_with_its_byte_range_after_the_batches_before_it() {
    each_trouble(Trouble::NeverComesBack, SHORT, |made, plan, seen, count, error| {
        let (lost_path, lost) = seen.troubled.lock().unwrap().clone().unwrap();
        assert_eq!(count, made.batches_before(plan, &lost_path, &lost).0);
        let Some(ReadError::Stalled { path, range, timeout }) = error else { panic!("{error:?}") };
        assert_eq!((path, range, timeout), (lost_path, lost, SHORT));
    });
}

#[test]
fn an_engine_that_fails_ends_the_epoch_with_its_reason_after_whole_batches() {
    each_trouble(Trouble::Refused, LONG, |_, _, _, count, error| {
        assert!(count < 40);
        assert!(matches!(error, Some(ReadError::Engine(EngineError::Broken { engine: "hostile", .. }))), "{error:?}");
    });
}

#[test]
fn an_engine_that_panics_ends_the_epoch_with_an_error_after_whole_batches() {
    each_trouble(Trouble::Panics, LONG, |_, _, _, count, error| {
        assert!(count < 40);
        let Some(error) = error else { panic!("an error is expected") };
        assert_eq!(error.to_string(), "internal error: the thread of an epoch has panicked; please report it");
    });
}

#[test]
fn an_epoch_dropped_at_any_batch_frees_its_thread_its_files_and_its_memory() {
    let made = MixedDataset::new(0);
    for order in ORDERS {
        for taken in 0..=40 {
            let (engine, seen) = hostile(Trouble::None, taken);
            let gone: Weak<EngineLog> = Arc::downgrade(&seen);
            drop(seen);
            let mut epoch = made.epoch(IoMode::Buffered, &options(order), engine, LONG);
            let channel = Arc::downgrade(&epoch.thread.as_ref().unwrap().channel);
            let plan = epoch.plan().clone();
            for _ in 0..taken {
                made.check(&plan, &epoch.next_batch().unwrap().unwrap());
            }
            drop(epoch);
            assert_eq!(gone.strong_count(), 0, "the engine has gone with its thread");
            assert_eq!(channel.strong_count(), 0);
        }
    }
    assert_eq!(open_files_of(&made), HashSet::new());
}

/// Files of the dataset that this process has open.
fn open_files_of(made: &MixedDataset) -> HashSet<PathBuf> {
    let Ok(links) = std::fs::read_dir("/proc/self/fd") else { return HashSet::new() };
    let targets = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    targets.filter(|target| target.starts_with(made.folder.path())).collect()
}

#[test]
fn an_epoch_whose_read_never_completes_can_be_dropped_while_it_waits() {
    let made = MixedDataset::new(0);
    let (engine, seen) = hostile(Trouble::NeverComesBack, 0);
    let epoch = made.epoch(IoMode::Buffered, &options(Order::Sequential), engine, LONG);
    // Then the epoch waits only for this read.
    while seen.vain_count.load(SeqCst) < 1000 {
        std::thread::yield_now();
    }
    let begin = std::time::Instant::now();
    drop(epoch);
    assert!(begin.elapsed() < LONG / 2, "it does not wait for the read's timeout");
    assert_eq!(Arc::strong_count(&seen), 1);
}

#[test]
fn a_file_that_cannot_be_opened_is_reported_after_the_batches_before_it() {
    let made = MixedDataset::new(0);
    let dataset = made.dataset();
    let (engine, _) = hostile(Trouble::None, 0);
    let path = dataset.segments()[1].path().to_owned();
    std::fs::remove_file(&path).unwrap();
    let mut epoch = made.epoch(IoMode::Buffered, &options(Order::Sequential), engine, LONG);
    let (count, error) = batches(&made, &mut epoch);
    assert_eq!(count, dataset.segments()[1].ordinals().start / BATCH_SIZE as u64);
    assert_eq!(error.unwrap().to_string(), format!("{}: no such file or directory", path.display()));
}
