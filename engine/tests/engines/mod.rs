//! Shared by the tests of engines: the engines, files with known content, and requests whose results are checked.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "each program uses its part, may fail, and says what it could not run"
)]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use grainstore_engine::{
    Buffer, BufferPool, Completion, Engine, EngineError, EngineStats, Failed, FileError, IoMode, OpenFile, PreadEngine,
    ReadRequest, UringEngine, UringOptions, UringOwner, Wait,
};
use tempfile::TempDir;

pub(crate) const EIO: i32 = 5;
/// The longest wait; only a failing test reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Make = fn() -> Box<dyn Engine>;

/// Every engine.
pub(crate) const ENGINES: [Make; 3] = [pread_engine, uring_engine, own_uring_engine];

/// An engine and the mode in which its files are opened.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) make: Make,
    pub(crate) mode: IoMode,
    /// Whether it fails some valid requests.
    pub(crate) hostile: bool,
}

pub(crate) const SUBJECTS: [Subject; 10] = [
    Subject { name: "pread, buffered", make: pread_engine, mode: IoMode::Buffered, hostile: false },
    Subject { name: "pread, direct", make: pread_engine, mode: IoMode::Direct, hostile: false },
    Subject { name: "uring, buffered", make: uring_engine, mode: IoMode::Buffered, hostile: false },
    Subject { name: "uring, direct", make: uring_engine, mode: IoMode::Direct, hostile: false },
    Subject { name: "uring of one thread, buffered", make: own_uring_engine, mode: IoMode::Buffered, hostile: false },
    Subject { name: "uring of one thread, direct", make: own_uring_engine, mode: IoMode::Direct, hostile: false },
    Subject { name: "hostile uring, buffered", make: hostile_uring_engine, mode: IoMode::Buffered, hostile: true },
    Subject { name: "hostile uring, direct", make: hostile_uring_engine, mode: IoMode::Direct, hostile: true },
    Subject { name: "hostile, buffered", make: hostile_engine, mode: IoMode::Buffered, hostile: true },
    Subject { name: "hostile, direct", make: hostile_engine, mode: IoMode::Direct, hostile: true },
];
/// Requests in flight in an engine, with the expected result of each.
pub(crate) struct Run<'a> {
    subject: &'a Subject,
    pub(crate) engine: Box<dyn Engine>,
    pool: BufferPool,
    /// File, offset and length by token; removed when the token comes back.
    expected: Vec<Option<(Arc<OpenFile>, usize, usize)>>,
    /// Addresses of all buffers that came back.
    pub(crate) places: BTreeSet<usize>,
    failed_count: usize,
}

impl<'a> Run<'a> {
    pub(crate) fn new(subject: &'a Subject) -> Self {
        Self {
            subject,
            engine: (subject.make)(),
            pool: BufferPool::new(64 << 20),
            expected: Vec::new(),
            places: BTreeSet::new(),
            failed_count: 0,
        }
    }

    pub(crate) fn submit(&mut self, source: &Arc<OpenFile>, offset: usize, len: usize) {
        let token = self.expected.len() as u64;
        let buffer = self.pool.take(source.buffer_len(offset as u64, len));
        self.expected.push(Some((Arc::clone(source), offset, len)));
        let source = Arc::clone(source);
        self.engine.submit(ReadRequest { file: source, offset: offset as u64, len, buffer, token }).unwrap();
    }

    pub(crate) fn complete(&mut self, wait: Wait) {
        let mut out = Vec::new();
        self.engine.complete(wait, &mut out).unwrap();
        assert!(wait == Wait::None || !out.is_empty(), "{}: did not wait", self.subject.name);
        out.into_iter().for_each(|completion| self.check(completion));
    }

    pub(crate) fn check(&mut self, completion: Completion) {
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

    /// Waits for all requests and checks that none is missing.
    pub(crate) fn finish(mut self) -> EngineStats {
        while self.engine.in_flight() > 0 {
            self.complete(Wait::One);
        }
        assert!(self.expected.iter().all(Option::is_none), "{}: a request was lost", self.subject.name);
        assert_eq!(self.failed_count > 0, self.subject.hostile && self.expected.len() > 7);
        self.engine.stats()
    }
}

/// Wraps another engine: completions are late and in random order, and every seventh token fails.
pub(crate) struct Hostile {
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

pub(crate) fn injected() -> FileError {
    let (path, source) = (std::path::Path::new("injected").into(), io::Error::from_raw_os_error(EIO));
    FileError::Io { path, range: 0..1, failed_at: 0, source }
}

pub(crate) fn pread_engine() -> Box<dyn Engine> {
    Box::new(PreadEngine::new(NonZeroUsize::new(4).unwrap()).unwrap())
}

pub(crate) fn uring_engine() -> Box<dyn Engine> {
    uring_engine_of(UringOwner::AnyThread)
}

pub(crate) fn own_uring_engine() -> Box<dyn Engine> {
    uring_engine_of(UringOwner::OneThread)
}

fn uring_engine_of(owner: UringOwner) -> Box<dyn Engine> {
    match UringEngine::new(UringOptions { owner, ..UringOptions::default() }) {
        Ok(engine) => Box::new(engine),
        Err(error) => {
            eprintln!("{error}: its cases run with threads");
            pread_engine()
        }
    }
}

pub(crate) fn hostile_uring_engine() -> Box<dyn Engine> {
    Box::new(Hostile { inner: uring_engine(), held: Vec::new(), random: Random(11) })
}

pub(crate) fn hostile_engine() -> Box<dyn Engine> {
    Box::new(Hostile { inner: pread_engine(), held: Vec::new(), random: Random(11) })
}

/// Files with known content, deleted at the end.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn open(&self, len: usize, subject: &Subject) -> Arc<OpenFile> {
        let path = self.0.path().join(format!("{len}.seg"));
        fs::write(&path, content(len)).unwrap();
        let source = OpenFile::open(&path, subject.mode).unwrap();
        if source.fell_back() {
            eprintln!("no direct I/O for {}: its cases run buffered", path.display());
        }
        Arc::new(source)
    }
}

pub(crate) fn request(source: &Arc<OpenFile>, offset: u64, len: usize, token: u64) -> ReadRequest {
    let buffer = Buffer::with_capacity(source.buffer_len(offset, len));
    ReadRequest { file: Arc::clone(source), offset, len, buffer, token }
}

pub(crate) fn wait_for_one(engine: &mut dyn Engine) -> Completion {
    let mut out = Vec::new();
    engine.complete(Wait::One, &mut out).unwrap();
    assert_eq!(out.len(), 1);
    out.remove(0)
}

/// Reads with a fresh engine.
pub(crate) fn complete_one(make: Make, source: &Arc<OpenFile>, offset: u64, len: usize) -> Result<Vec<u8>, Failed> {
    let mut engine = make();
    engine.submit(request(source, offset, len, 0)).unwrap();
    wait_for_one(engine.as_mut()).result.map(|filled| filled.bytes().to_vec())
}

pub(crate) fn cause(error: &FileError) -> &io::Error {
    error.source().expect("a cause").downcast_ref().expect("an I/O error")
}

/// Bytes in which any shift is detected.
pub(crate) fn content(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// Xorshift with a fixed seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}
