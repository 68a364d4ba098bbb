//! The engine: turns read requests into filled buffers. The code above it does not know how bytes are read, and the
//! engine does not know what they mean.
//!
//! ```text
//! ReadRequest { file, offset, len, buffer, token }  -- submit -->  engine  --> io_uring | pread threads | mapped file
//! Completion  { token, result: Filled or Failed }   <- complete -  (any order)
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use grainstore_engine::{Buffer, Engine, IoMode, OpenFile, PreadEngine, ReadRequest, Wait};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("greeting");
//! std::fs::write(&path, "hello, engine")?;
//! let file = Arc::new(OpenFile::open(&path, IoMode::Buffered)?);
//! let buffer = Buffer::with_capacity(file.buffer_len(7, 6));
//!
//! let mut engine = PreadEngine::new(2.try_into()?)?;
//! engine.submit(ReadRequest { file, offset: 7, len: 6, buffer, token: 1 })?;
//! let mut completions = Vec::new();
//! engine.complete(Wait::One, &mut completions)?;
//! let filled = completions.remove(0).result.map_err(|failed| failed.error)?;
//! assert_eq!(filled.bytes(), b"engine");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Rules that every engine keeps, whatever the device is:
//! - A request owns its buffer and its file until its completion, which gives the buffer back even if the read failed.
//!   Each submitted request is completed once, or dropped with the engine.
//! - A failed read is a completion with an error ([`FileError`]). An [`EngineError`] means that the engine itself cannot
//!   continue.
//! - For a file opened for direct I/O, the engine reads whole blocks of 4096 bytes and reports where in the buffer the
//!   wanted bytes begin. It delivers all of them or an error, never fewer.
//! - For a mapped file, the engine reads nothing and lends the bytes. Zeros stand for bytes that cannot be read. The caller
//!   notices by the checksum, and gets the error by reading the file unmapped.
//! - Dropping an engine drains it: no read continues afterwards. If a device does not answer for [`DRAIN_MAX`], its
//!   reads are abandoned, and the memory that they may still write to is leaked.
//!
//! An engine repeats a read only if it was short or interrupted, if the system asked to try again, or if it refused a
//! direct or uncached read. Checksums and caching are not its task.
//!
//! The files, in reading order:
//!
//! | file | contents |
//! | --- | --- |
//! | `lib.rs` | the [`Engine`] trait, requests, completions |
//! | `buffer.rs`, `buffer_pool.rs`, `filled.rs` | the memory that reads fill: aligned, recycled, and what a read delivered |
//! | `fresh_memory.rs` | pages of new memory, all at once |
//! | `open_file.rs`, `read_at.rs`, `file_map.rs`, `announcing.rs` | an open file: direct, buffered or mapped |
//! | `map_guard.rs` | what happens when a mapped page cannot be read |
//! | `in_flight.rs`, `short_read.rs` | a request in flight; what a short, interrupted or refused read means |
//! | `read_now.rs` | a read in the caller's thread, without an engine |
//! | `mapped_engine.rs`, `pread.rs` | the engines for mapped files and for threads that call `pread` |
//! | `uring/` | the engine for io_uring |
//! | `error.rs` | what can go wrong |
#![deny(unsafe_code)]

mod announcing;
#[allow(unsafe_code, reason = "aligned memory that can be split and joined")]
mod buffer;
mod buffer_pool;
mod error;
#[allow(unsafe_code, reason = "a file mapped into memory")]
mod file_map;
mod filled;
#[allow(unsafe_code, reason = "pages of memory that is borrowed are asked for")]
mod fresh_memory;
mod in_flight;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a handler for faults of maps")]
mod map_guard;
#[cfg(not(target_os = "linux"))]
#[path = "map_unguarded.rs"]
mod map_guard;
mod mapped_engine;
mod open_file;
mod pread;
mod read_at;
mod read_now;
mod short_read;
mod uring;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use buffer::{BLOCK_LEN, Buffer, HUGE_LEN, PREFETCH_LEN_MAX, Pages, prefetch};
pub use buffer_pool::BufferPool;
pub use error::{EngineError, FileError};
pub use filled::Filled;
pub use fresh_memory::provide_pages;
pub use mapped_engine::MappedEngine;
pub use open_file::{IoMode, OpenFile};
pub use pread::PreadEngine;
pub use read_at::ReadAt;
pub use read_now::{append_now, read_now};
pub use uring::{UringEngine, UringOptions, UringOwner};

/// How long a dropped engine waits for reads that have begun.
pub const DRAIN_MAX: Duration = Duration::from_secs(10);

/// Reads bytes of files into buffers, many requests at a time.
pub trait Engine: Send {
    /// Accepts a request. It never waits for a read: an engine that cannot have more in flight queues
    /// the rest. An engine may also collect requests and start them in the next `complete`.
    ///
    /// # Errors
    /// If the engine can accept no more requests; the request is dropped.
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError>;

    /// Appends completions to `out`, in any order, and waits for as many as `wait` specifies. With no
    /// requests in flight it appends nothing and does not wait.
    ///
    /// # Errors
    /// If requests are in flight that the engine can no longer complete.
    fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError>;

    /// Announces that many reads will write to the memory region of `buffer`, so that the engine may register it with
    /// the kernel once instead of pinning it for every read. An engine may ignore this.
    fn register(&mut self, buffer: &Buffer) {
        let _ = buffer;
    }

    /// Requests that have been submitted and not yet returned by `complete`.
    fn in_flight(&self) -> usize;

    /// Counters since the engine was made.
    fn stats(&self) -> EngineStats;

    /// What a user may want to know about how the engine works on this machine: one sentence each, without a full stop.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// The engine's name, for statistics and messages.
    fn name(&self) -> &'static str;
}

/// How long `complete` waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It does not wait.
    None,
    /// Until one request has been completed.
    One,
    /// Until this many have been completed, or all that are in flight.
    Many(usize),
    /// Until `count` have been completed, or all that are in flight, but no longer than `timeout`: then there may be
    /// fewer, or none.
    Within {
        /// Number of requests.
        count: usize,
        /// The longest wait.
        timeout: Duration,
    },
}

impl Wait {
    /// Number of requests to wait for when `in_flight` are in flight.
    #[must_use]
    pub fn count(self, in_flight: usize) -> usize {
        match self {
            Self::None => 0,
            Self::One => in_flight.min(1),
            Self::Many(count) | Self::Within { count, .. } => in_flight.min(count),
        }
    }
}

/// A read to perform.
#[derive(Debug)]
pub struct ReadRequest {
    /// The file.
    pub file: Arc<OpenFile>,
    /// The first byte wanted, from the start of the file.
    pub offset: u64,
    /// Number of bytes wanted.
    pub len: usize,
    /// Where the bytes go. It holds [`OpenFile::buffer_len`] bytes or more.
    pub buffer: Buffer,
    /// The caller's number for the request; the engine returns it unchanged.
    pub token: u64,
}

impl ReadRequest {
    /// The span that an engine has to read for this request, after a check that it fits the file and the buffer.
    ///
    /// # Errors
    /// If the wanted bytes end past the file, or the buffer is too small.
    pub fn span(&self) -> Result<Span, FileError> {
        let file = &self.file;
        let end = self.offset.checked_add(self.len as u64).filter(|&end| end <= file.file_len());
        if end.is_none() {
            return Err(file.end_of_file(self.range(), file.file_len()));
        }
        let span = file.mode().span(self.offset, self.len);
        if span.len > self.buffer.capacity() {
            return Err(FileError::BufferTooSmall {
                path: file.shared_path(),
                range: self.range(),
                needed: span.len,
                capacity: self.buffer.capacity(),
            });
        }
        Ok(span)
    }

    /// The wanted bytes as a range of the file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.len as u64)
    }
}

/// The bytes that an engine reads for a request: the wanted ones, widened to whole blocks for a direct file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Whether offset, length and memory have to be whole blocks.
    pub mode: IoMode,
    /// The first byte to read, from the start of the file.
    pub offset: u64,
    /// Number of bytes to read; those after the wanted ones may be past the end of the file.
    pub len: usize,
    /// Where the wanted bytes are in the buffer.
    pub wanted: Range<usize>,
}

/// The end of a request.
#[derive(Debug)]
pub struct Completion {
    /// The request's token.
    pub token: u64,
    /// All wanted bytes, or the error. Both give the buffer back.
    pub result: Result<Filled, Failed>,
}

/// A read that failed.
#[derive(Debug)]
pub struct Failed {
    /// The cause.
    pub error: FileError,
    /// The request's buffer, with arbitrary bytes in it.
    pub buffer: Buffer,
}

/// Counters of an engine since it was made. Bytes read divided by bytes wanted is the read
/// amplification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Requests submitted.
    pub request_count: u64,
    /// Bytes that successful requests wanted.
    pub wanted_bytes: u64,
    /// Bytes that files delivered: widened to blocks, and including failed and repeated reads.
    pub read_bytes: u64,
    /// Bytes of memory that are currently registered with the kernel.
    pub registered_bytes: u64,
}
