//! One suite for all engines: every byte right, every request completed once, every error with its
//! place, every buffer given back. It runs on each engine with buffered and with direct sources,
//! and on a hostile one that reorders, holds back and fails. Below it, devices that cut reads
//! short, interrupt, refuse, fail, panic or hang show what the thread pool makes of them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail, and says what it could not run"
)]

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use grainstore_reader::engine::{
    BLOCK_LEN, Buffer, BufferPool, Completion, Engine, EngineError, EngineStats, Failed, IoMode, PreadEngine, ReadAt,
    ReadError, ReadRequest, Source, Wait,
};
use proptest::prelude::*;
use tempfile::TempDir;

const EIO: i32 = 5;
const EINVAL: i32 = 22;
/// Not a multiple of anything.
const FILE_LEN: usize = 300_007;
/// Only ever reached by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// An engine and the way its sources are opened.
struct Subject {
    name: &'static str,
    make: fn() -> Box<dyn Engine>,
    mode: IoMode,
    /// Whether it fails requests that are in order.
    hostile: bool,
}

const SUBJECTS: [Subject; 4] = [
    Subject { name: "pread, buffered", make: pread_engine, mode: IoMode::Buffered, hostile: false },
    Subject { name: "pread, direct", make: pread_engine, mode: IoMode::Direct, hostile: false },
    Subject { name: "hostile, buffered", make: hostile_engine, mode: IoMode::Buffered, hostile: true },
    Subject { name: "hostile, direct", make: hostile_engine, mode: IoMode::Direct, hostile: true },
];

#[test]
fn delivers_every_range_between_edges_of_blocks_and_the_end_of_the_file() {
    for subject in &SUBJECTS {
        for file_len in [1, 511, 4096, 5000, 8192, FILE_LEN] {
            let files = Files::new();
            let source = files.open(file_len, subject);
            let edges = edges(file_len);
            let mut run = Run::new(subject);
            for (i, &from) in edges.iter().enumerate() {
                edges[i..].iter().for_each(|&to| run.submit(&source, from, to - from));
            }
            run.finish();
        }
    }
}

#[test]
fn completes_every_request_once_with_hundreds_in_flight() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let sources = [files.open(FILE_LEN, subject), files.open(70_001, subject)];
        let mut run = Run::new(subject);
        let mut random = Random(7);
        for i in 0..1500 {
            let source = &sources[i % 2];
            let file_len = usize::try_from(source.file_len()).unwrap();
            let offset = random.below(file_len);
            run.submit(source, offset, random.below((file_len - offset).min(40_000)));
            if random.below(5) == 0 {
                run.complete(Wait::None);
            }
        }
        run.finish();
    }
}

#[test]
fn a_range_past_the_end_of_the_file_fails_with_its_place_and_its_buffer() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let source = files.open(5000, subject);
        for (offset, len) in [(0, 5001), (4999, 2), (5000, 1), (1 << 40, 4096), (u64::MAX, 1), (u64::MAX - 4096, 8192)]
        {
            let failed = complete_one(subject, &source, offset, len).unwrap_err();
            let end = offset.saturating_add(len as u64);
            let expected = format!("{}: file ends at 5000, wanted bytes {offset}..{end}", source.path().display());
            assert_eq!(failed.error.to_string(), expected, "{}", subject.name);
            assert!(failed.buffer.capacity() >= 4096);
        }
    }
}

#[test]
fn a_request_for_no_bytes_is_completed_with_none() {
    for subject in SUBJECTS.iter().filter(|subject| !subject.hostile) {
        let files = Files::new();
        let source = files.open(5000, subject);
        for offset in [0, 17, 5000, u64::MAX] {
            let mut engine = (subject.make)();
            let buffer = Buffer::with_capacity(0);
            engine.submit(ReadRequest { source: Arc::clone(&source), offset, len: 0, buffer, token: 3 }).unwrap();
            assert_eq!(engine.in_flight(), 1);
            let mut out = Vec::new();
            engine.complete(Wait::None, &mut out).unwrap();
            assert_eq!((out.len(), out[0].token, engine.in_flight()), (1, 3, 0), "without any waiting");
            assert!(out[0].result.as_ref().unwrap().bytes().is_empty());
            assert_eq!(engine.stats().read_bytes, 0);
        }
    }
}

#[test]
fn a_buffer_that_is_too_small_is_an_error_and_not_a_shorter_read() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let source = files.open(20_000, subject);
        let mut engine = (subject.make)();
        let buffer = Buffer::with_capacity(4096);
        engine.submit(ReadRequest { source: Arc::clone(&source), offset: 4096, len: 4097, buffer, token: 0 }).unwrap();
        let failed = wait_for_one(engine.as_mut()).result.unwrap_err();
        let needed = source.buffer_len(4096, 4097);
        let expected =
            format!("{}: bytes 4096..8193 need a buffer of {needed} bytes, it holds 4096", source.path().display());
        assert_eq!(failed.error.to_string(), expected);
        assert_eq!(failed.buffer.capacity(), 4096);
    }
}

#[test]
fn waiting_with_nothing_in_flight_returns_at_once_with_nothing() {
    for subject in &SUBJECTS {
        let (mut engine, mut out) = ((subject.make)(), Vec::new());
        engine.complete(Wait::One, &mut out).unwrap();
        engine.complete(Wait::None, &mut out).unwrap();
        assert!(out.is_empty() && engine.in_flight() == 0, "{}", subject.name);
    }
}

#[test]
fn dropping_an_engine_with_requests_in_flight_ends_and_lets_go_of_files() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let source = files.open(FILE_LEN, subject);
        let mut run = Run::new(subject);
        (0..500).for_each(|i| run.submit(&source, i * 100, 20_000));
        run.complete(Wait::One);
        drop(run);
        assert_eq!(Arc::strong_count(&source), 1, "{}", subject.name);
    }
}

#[test]
fn a_few_recycled_buffers_serve_many_requests() {
    for subject in &SUBJECTS {
        let files = Files::new();
        let source = files.open(FILE_LEN, subject);
        let mut run = Run::new(subject);
        for i in 0..400 {
            run.submit(&source, i * 700, 9000);
            while run.engine.in_flight() >= 8 {
                run.complete(Wait::One);
            }
        }
        assert!(run.places.len() <= 8, "{}: {} buffers for 8 requests at a time", subject.name, run.places.len());
        run.finish();
    }
}

#[test]
fn statistics_tell_the_read_amplification() {
    for subject in SUBJECTS.iter().filter(|subject| !subject.hostile) {
        let files = Files::new();
        let source = files.open(FILE_LEN, subject);
        let mut run = Run::new(subject);
        [(0, 4096), (4095, 2), (8192, 100), (FILE_LEN - 1, 1)]
            .into_iter()
            .for_each(|(at, len)| run.submit(&source, at, len));
        let stats = run.finish();
        let read_bytes = match source.mode() {
            IoMode::Buffered => 4096 + 2 + 100 + 1,
            // The last block of the file ends with it.
            IoMode::Direct => 4096 + 2 * 4096 + 4096 + FILE_LEN % BLOCK_LEN,
        };
        assert_eq!(stats, EngineStats { request_count: 4, wanted_bytes: 4199, read_bytes: read_bytes as u64 });
    }
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    for mode in [IoMode::Direct, IoMode::Buffered] {
        let err = Source::open("/nowhere/00001.seg", mode).unwrap_err();
        assert_eq!(err.to_string(), "/nowhere/00001.seg: cannot open the file");
        assert_eq!(cause(&err).kind(), io::ErrorKind::NotFound);
    }
}

// From here on: devices that misbehave, and the thread pool.

#[derive(Debug, Clone)]
enum Step {
    Short(usize),
    Errno(i32),
    Panic,
    /// Says that it has begun, and goes on when told to.
    Hang(Sender<()>, Receiver<()>),
}

/// A device that follows a script, then behaves. While direct it refuses what is not in blocks.
struct Device {
    bytes: Vec<u8>,
    told_len: AtomicUsize,
    script: Mutex<VecDeque<Step>>,
    direct: AtomicBool,
}

impl Device {
    fn new(len: usize, script: impl IntoIterator<Item = Step>, mode: IoMode) -> Self {
        Self {
            bytes: content(len),
            told_len: len.into(),
            script: Mutex::new(script.into_iter().collect()),
            direct: AtomicBool::new(mode == IoMode::Direct),
        }
    }
}

impl ReadAt for Device {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let offset = usize::try_from(offset).unwrap();
        let aligned = [offset, bytes.len(), bytes.as_ptr().addr()].iter().all(|place| place.is_multiple_of(BLOCK_LEN));
        let step = self.script.lock().unwrap().pop_front();
        let len_max = match step {
            Some(Step::Errno(errno)) => return Err(io::Error::from_raw_os_error(errno)),
            Some(Step::Panic) => panic!("the device panics, as the test wants"),
            Some(Step::Hang(begun, go_on)) => {
                begun.send(()).unwrap();
                go_on.recv_timeout(PATIENCE).unwrap();
                usize::MAX
            }
            _ if self.direct.load(Ordering::SeqCst) && !aligned => return Err(io::Error::from_raw_os_error(EINVAL)),
            Some(Step::Short(len)) => len,
            None => usize::MAX,
        };
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let len = rest.len().min(bytes.len()).min(len_max);
        bytes[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    /// The first answer is the told length, later ones are the real one.
    fn file_len(&self) -> io::Result<u64> {
        Ok(self.told_len.swap(self.bytes.len(), Ordering::SeqCst) as u64)
    }

    fn leave_direct(&self) -> io::Result<()> {
        self.direct.store(false, Ordering::SeqCst);
        Ok(())
    }
}

proptest! {
    #[test]
    fn any_sequence_of_short_and_interrupted_reads_yields_the_right_bytes(
        direct in any::<bool>(),
        steps in prop::collection::vec(prop_oneof![
            (1usize..6000).prop_map(Step::Short),
            (1usize..4).prop_map(|blocks| Step::Short(blocks * BLOCK_LEN)),
            Just(Step::Errno(rustix::io::Errno::INTR.raw_os_error())),
        ], 0..12),
        (offset, len) in (0usize..30_000).prop_flat_map(|offset| (Just(offset), 1..=30_000 - offset)),
    ) {
        let mode = if direct { IoMode::Direct } else { IoMode::Buffered };
        let source = source(Device::new(30_000, steps, mode), mode);
        let filled = complete_one(&SUBJECTS[0], &source, offset as u64, len).unwrap();
        prop_assert_eq!(filled, &content(30_000)[offset..offset + len]);
    }
}

#[test]
fn a_direct_read_cut_short_between_blocks_stays_direct_and_inside_a_block_does_not_loop() {
    for (cut, falls_back) in [(4096, false), (5000, false), (100, true)] {
        let script = (0..3).map(|_| Step::Short(cut));
        let source = source(Device::new(30_000, script, IoMode::Direct), IoMode::Direct);
        let bytes = complete_one(&SUBJECTS[1], &source, 10, 25_000).unwrap();
        assert_eq!(bytes, content(30_000)[10..25_010], "{cut}");
        assert_eq!(source.fell_back(), falls_back, "{cut}");
    }
}

#[test]
fn an_io_error_names_path_range_and_place_and_keeps_its_cause() {
    let script = [Step::Short(8192), Step::Errno(EIO)];
    let source = source(Device::new(30_000, script, IoMode::Direct), IoMode::Direct);
    let failed = complete_one(&SUBJECTS[1], &source, 5000, 20_000).unwrap_err();
    assert_eq!(failed.error.to_string(), "device.seg: cannot read bytes 5000..25000, failed at 12288");
    assert_eq!(cause(&failed.error).raw_os_error(), Some(EIO));
    assert!(!source.fell_back(), "a bad block is no reason to");
}

#[test]
fn a_refused_direct_read_is_done_buffered_and_the_source_says_so() {
    let source = source(Device::new(30_000, [Step::Errno(EINVAL)], IoMode::Direct), IoMode::Direct);
    assert!(!source.fell_back());
    let bytes = complete_one(&SUBJECTS[1], &source, 5000, 20_000).unwrap();
    assert_eq!(bytes, content(30_000)[5000..25_000]);
    assert!(source.fell_back());
    assert_eq!(source.mode(), IoMode::Buffered);
    assert_eq!(source.buffer_len(5000, 20_000), 20_000, "nothing is widened any more");
}

#[test]
fn a_refused_buffered_read_is_an_error_and_is_not_tried_again() {
    let source = source(Device::new(30_000, [Step::Errno(EINVAL)], IoMode::Buffered), IoMode::Buffered);
    let failed = complete_one(&SUBJECTS[0], &source, 0, 100).unwrap_err();
    assert_eq!(cause(&failed.error).raw_os_error(), Some(EINVAL));
    assert!(!source.fell_back());
}

#[test]
fn a_file_that_became_shorter_is_an_error_that_tells_where_it_ends_now() {
    for mode in [IoMode::Direct, IoMode::Buffered] {
        for (offset, len) in [(0, 9000), (4999, 2), (6000, 100), (8192, 100)] {
            let device = Device { told_len: 9000.into(), ..Device::new(5000, [], mode) };
            let source = source(device, mode);
            let failed = complete_one(&SUBJECTS[0], &source, offset, len).unwrap_err();
            let expected = format!("device.seg: file ends at 5000, wanted bytes {offset}..{}", offset + len as u64);
            assert_eq!(failed.error.to_string(), expected, "{mode:?}");
            assert!(!source.fell_back());
        }
    }
}

#[test]
fn a_slow_read_does_not_hold_back_a_later_one() {
    let ((begun, has_begun), (go_on, waits)) = (bounded(1), bounded(1));
    let slow = source(Device::new(100, [Step::Hang(begun, waits)], IoMode::Buffered), IoMode::Buffered);
    let quick = source(Device::new(100, [], IoMode::Buffered), IoMode::Buffered);
    let mut engine = pread_engine();
    engine.submit(request(&slow, 0, 100, 1)).unwrap();
    has_begun.recv_timeout(PATIENCE).unwrap();
    engine.submit(request(&quick, 0, 100, 2)).unwrap();
    assert_eq!(wait_for_one(engine.as_mut()).token, 2);
    assert_eq!(engine.in_flight(), 1);
    go_on.send(()).unwrap();
    assert_eq!(wait_for_one(engine.as_mut()).token, 1);
}

#[test]
fn a_panic_while_reading_fails_its_request_and_no_other() {
    let bad = source(Device::new(100, [Step::Panic], IoMode::Buffered), IoMode::Buffered);
    let mut engine = PreadEngine::new(NonZeroUsize::MIN).unwrap();
    engine.submit(request(&bad, 10, 20, 1)).unwrap();
    let failed = wait_for_one(&mut engine).result.unwrap_err();
    assert_eq!(failed.error.to_string(), "device.seg: reading bytes 10..30 panicked");
    assert_eq!(failed.buffer.capacity(), 4096);
    engine.submit(request(&bad, 30, 40, 2)).unwrap();
    assert_eq!(wait_for_one(&mut engine).result.unwrap().bytes(), &content(100)[30..70]);
}

#[test]
fn dropping_waits_for_the_read_that_has_begun_and_drops_the_queued_ones_unread() {
    let ((begun, has_begun), (go_on, waits)) = (bounded(1), bounded(1));
    let slow = source(Device::new(100, [Step::Hang(begun, waits.clone())], IoMode::Buffered), IoMode::Buffered);
    let (queued_begun, queued_has_begun) = bounded(1);
    let queued = source(Device::new(100, [Step::Hang(queued_begun, waits)], IoMode::Buffered), IoMode::Buffered);
    let mut engine = PreadEngine::new(NonZeroUsize::MIN).unwrap();
    engine.submit(request(&slow, 0, 100, 0)).unwrap();
    has_begun.recv_timeout(PATIENCE).unwrap();
    (1..100).for_each(|token| engine.submit(request(&queued, 0, 100, token)).unwrap());
    drop(queued);
    let dropping = thread::spawn(move || drop(engine));
    // The device went with the last of its requests, and never said that a read had begun.
    assert_eq!(queued_has_begun.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    assert_eq!(Arc::strong_count(&slow), 2, "the running read keeps its file");
    go_on.send(()).unwrap();
    dropping.join().unwrap();
    assert_eq!(Arc::strong_count(&slow), 1);
}

// What the tests share.

/// Requests on their way through an engine, with what each must yield.
struct Run<'a> {
    subject: &'a Subject,
    engine: Box<dyn Engine>,
    pool: BufferPool,
    /// Source, offset and length by token; taken when the token comes back.
    expected: Vec<Option<(Arc<Source>, usize, usize)>>,
    /// Addresses of all buffers that came back.
    places: BTreeSet<usize>,
    failed_count: usize,
}

impl<'a> Run<'a> {
    fn new(subject: &'a Subject) -> Self {
        Self {
            subject,
            engine: (subject.make)(),
            pool: BufferPool::new(64 << 20),
            expected: Vec::new(),
            places: BTreeSet::new(),
            failed_count: 0,
        }
    }

    fn submit(&mut self, source: &Arc<Source>, offset: usize, len: usize) {
        let token = self.expected.len() as u64;
        let buffer = self.pool.take(source.buffer_len(offset as u64, len));
        self.expected.push(Some((Arc::clone(source), offset, len)));
        let source = Arc::clone(source);
        self.engine.submit(ReadRequest { source, offset: offset as u64, len, buffer, token }).unwrap();
    }

    fn complete(&mut self, wait: Wait) {
        let mut out = Vec::new();
        self.engine.complete(wait, &mut out).unwrap();
        assert!(wait == Wait::None || !out.is_empty(), "{}: did not wait", self.subject.name);
        out.into_iter().for_each(|completion| self.check(completion));
    }

    fn check(&mut self, completion: Completion) {
        let name = self.subject.name;
        let slot = self.expected.get_mut(usize::try_from(completion.token).unwrap());
        let (source, offset, len) = slot.expect("a token of ours").take().expect("a token comes back once");
        let buffer = match completion.result {
            Ok(filled) => {
                let file_len = usize::try_from(source.file_len()).unwrap();
                // Not `assert_eq`, which would print megabytes.
                let right = filled.bytes() == &content(file_len)[offset..offset + len];
                assert!(right, "{name}: {offset}..{} of {file_len}", offset + len);
                filled.into_buffer()
            }
            Err(Failed { error, buffer }) => {
                assert!(self.subject.hostile, "{name}: {error}");
                self.failed_count += 1;
                buffer
            }
        };
        self.places.insert(buffer.as_slice().as_ptr().addr());
        self.pool.give(buffer);
    }

    /// Waits for everything and checks that nothing is missing.
    fn finish(mut self) -> EngineStats {
        while self.engine.in_flight() > 0 {
            self.complete(Wait::One);
        }
        assert!(self.expected.iter().all(Option::is_none), "{}: a request was lost", self.subject.name);
        assert_eq!(self.failed_count > 0, self.subject.hostile && self.expected.len() > 7);
        self.engine.stats()
    }
}

/// Wraps another engine: completions come late, in a random order, and every seventh token fails.
struct Hostile {
    inner: Box<dyn Engine>,
    held: Vec<Completion>,
    random: Random,
}

impl Engine for Hostile {
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError> {
        self.inner.submit(request)
    }

    fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let inner_wait = if self.held.is_empty() { wait } else { Wait::None };
        self.inner.complete(inner_wait, &mut self.held)?;
        let count = self.random.below(self.held.len().min(5) + 1).max(usize::from(wait == Wait::One));
        for _ in 0..count.min(self.held.len()) {
            let Completion { token, result } = self.held.swap_remove(self.random.below(self.held.len()));
            let result = result.and_then(|filled| match token % 7 {
                6 => Err(Failed { error: injected(), buffer: filled.into_buffer() }),
                _ => Ok(filled),
            });
            out.push(Completion { token, result });
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.held.len()
    }

    fn stats(&self) -> EngineStats {
        self.inner.stats()
    }

    fn name(&self) -> &'static str {
        "hostile"
    }
}

fn injected() -> ReadError {
    let (path, source) = (std::path::Path::new("injected").into(), io::Error::from_raw_os_error(EIO));
    ReadError::Io { path, range: 0..1, failed_at: 0, source }
}

fn pread_engine() -> Box<dyn Engine> {
    Box::new(PreadEngine::new(NonZeroUsize::new(4).unwrap()).unwrap())
}

fn hostile_engine() -> Box<dyn Engine> {
    Box::new(Hostile { inner: pread_engine(), held: Vec::new(), random: Random(11) })
}

/// Files with known content, deleted at the end.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self, len: usize, subject: &Subject) -> Arc<Source> {
        let path = self.0.path().join(format!("{len}.seg"));
        fs::write(&path, content(len)).unwrap();
        let source = Source::open(&path, subject.mode).unwrap();
        if source.fell_back() {
            eprintln!("no direct I/O for {}: its cases run buffered", path.display());
        }
        Arc::new(source)
    }
}

fn source(device: Device, mode: IoMode) -> Arc<Source> {
    Arc::new(Source::from_reader("device.seg", device, mode).unwrap())
}

fn request(source: &Arc<Source>, offset: u64, len: usize, token: u64) -> ReadRequest {
    let buffer = Buffer::with_capacity(source.buffer_len(offset, len));
    ReadRequest { source: Arc::clone(source), offset, len, buffer, token }
}

fn wait_for_one(engine: &mut dyn Engine) -> Completion {
    let mut out = Vec::new();
    engine.complete(Wait::One, &mut out).unwrap();
    assert_eq!(out.len(), 1);
    out.remove(0)
}

/// Reads with a fresh engine of the subject.
fn complete_one(subject: &Subject, source: &Arc<Source>, offset: u64, len: usize) -> Result<Vec<u8>, Failed> {
    let mut engine = (subject.make)();
    engine.submit(request(source, offset, len, 0)).unwrap();
    wait_for_one(engine.as_mut()).result.map(|filled| filled.bytes().to_vec())
}

fn cause(error: &ReadError) -> &io::Error {
    error.source().expect("a cause").downcast_ref().expect("an I/O error")
}

/// Offsets beside the edges of sectors, blocks and pages, and the file's end.
fn edges(file_len: usize) -> Vec<usize> {
    let beside = |edge: usize| [edge.saturating_sub(1), edge, edge + 1];
    let edges = [0, 512, 4096, 8192, 65_536, file_len & !4095, file_len].into_iter().flat_map(beside);
    edges.filter(|&edge| edge <= file_len).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Bytes in which any shift shows.
fn content(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// Xorshift with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}
