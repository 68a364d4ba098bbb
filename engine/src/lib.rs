//! The waist: what turns requests into filled buffers. Above it nobody knows how bytes are fetched,
//! below it nobody knows what they mean.
//!
//! ```text
//! ReadRequest { file, offset, len, buffer, token }  -- submit -->  engine
//! Completion  { token, result: Filled or Failed }     <- complete -  (any order)
//! ```
//!
//! Rules that every engine keeps, whatever the device is:
//! - A request owns its buffer and its file until its completion, which gives the buffer back, also
//!   where the read failed. Each request submitted is completed once, or dropped with the engine.
//! - A failed read is a completion; `EngineError` means that the engine itself cannot go on.
//! - Where the file is direct, the engine reads whole blocks of 4096 bytes and says where in the
//!   buffer the wanted bytes begin. It delivers all of them or an error, never fewer.
//! - Where the file is mapped, the engine reads nothing and lends the bytes.
//! - Dropping an engine drains it: no read goes on afterwards. A device that does not answer for
//!   [`DRAIN_MAX`] is left alone, and what it may still write to is never used again.
//!
//! No retries but for reads that are short, interrupted or told to try again; no checksums, no
//! caching: that is the reader's.
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "aligned memory that can be cut and joined")]
mod buffer;
mod error;
mod filled;
mod inline;
mod job;
#[allow(unsafe_code, reason = "a file mapped into memory")]
mod map;
mod mapped;
mod open_file;
mod pool;
mod pread;
mod progress;
mod read_at;
mod uring;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use buffer::{BLOCK_LEN, Buffer, HUGE_LEN, PREFETCH_LEN_MAX, Pages, prefetch};
pub use error::{EngineError, FileError};
pub use filled::Filled;
pub use inline::{append_now, read_now};
pub use mapped::MappedEngine;
pub use open_file::{IoMode, OpenFile};
pub use pool::BufferPool;
pub use pread::PreadEngine;
pub use read_at::ReadAt;
pub use uring::{UringEngine, UringOptions, UringOwner};

/// How long a dropped engine waits for reads that have begun.
pub const DRAIN_MAX: Duration = Duration::from_secs(10);

/// Fetches bytes of files into buffers, many requests at a time.
pub trait Engine: Send {
    /// Takes a request. It never waits for a read: an engine that can hold no more in flight queues
    /// the rest. An engine may also collect requests, and start them by the next `complete`.
    ///
    /// # Errors
    /// Where the engine can take no requests any more; the request is dropped.
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError>;

    /// Appends to `out` what has been completed, in any order, as far as `wait` says. With no
    /// requests in flight it appends nothing and does not wait.
    ///
    /// # Errors
    /// Where requests are in flight that the engine can no longer complete.
    fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError>;

    /// Says that many reads will land in the memory that `buffer` is a part of, so that the engine
    /// may make it known to the kernel once instead of with every read. It need not.
    fn register(&mut self, buffer: &Buffer) {
        let _ = buffer;
    }

    /// Requests that have been submitted and not yet handed out by `complete`.
    fn in_flight(&self) -> usize;

    /// What it has done since it was made.
    fn stats(&self) -> EngineStats;

    /// What a user may want to know of how it works here: a sentence each, without a full stop.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Its name, for statistics and messages.
    fn name(&self) -> &'static str;
}

/// How long `complete` waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    None,
    /// Until one request has been completed.
    One,
    /// Until so many have been completed, or all that are in flight.
    Many(usize),
    /// Until so many have been completed, or all that are in flight, but no longer than this: then there may be
    /// fewer, or none.
    Within {
        /// Requests.
        count: usize,
        /// The longest wait.
        timeout: Duration,
    },
}

impl Wait {
    /// Requests to wait for, of so many in flight.
    #[must_use]
    pub fn count(self, in_flight: usize) -> usize {
        match self {
            Self::None => 0,
            Self::One => in_flight.min(1),
            Self::Many(count) | Self::Within { count, .. } => in_flight.min(count),
        }
    }
}

/// A read to be done.
#[derive(Debug)]
pub struct ReadRequest {
    /// The file.
    pub file: Arc<OpenFile>,
    /// The first byte wanted, from the start of the file.
    pub offset: u64,
    /// Bytes wanted.
    pub len: usize,
    /// Where they go. It holds [`OpenFile::buffer_len`] bytes or more.
    pub buffer: Buffer,
    /// The caller's name for the request; the engine gives it back and does not look at it.
    pub token: u64,
}

impl ReadRequest {
    /// What an engine has to read for this request, after a check that file and buffer hold it.
    ///
    /// # Errors
    /// Where the wanted bytes end past the file, or the buffer is too small.
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

/// What an engine reads for a request: the wanted bytes, widened to whole blocks for a direct file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Whether offset, length and memory have to be whole blocks.
    pub mode: IoMode,
    /// The first byte to read, from the start of the file.
    pub offset: u64,
    /// Bytes to read; those behind the wanted ones may lie past the end of the file.
    pub len: usize,
    /// Where the wanted bytes lie in the buffer.
    pub wanted: Range<usize>,
}

/// A request that is over.
#[derive(Debug)]
pub struct Completion {
    /// The request's token.
    pub token: u64,
    /// All bytes wanted, or why there are none. Either gives the buffer back.
    pub result: Result<Filled, Failed>,
}

/// A read that failed.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub error: FileError,
    /// The request's buffer, with arbitrary bytes in it.
    pub buffer: Buffer,
}

/// What an engine has done since it was made. Bytes read divided by bytes wanted is the read
/// amplification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Requests submitted.
    pub request_count: u64,
    /// Bytes of successful requests, as they were asked for.
    pub wanted_bytes: u64,
    /// Bytes that files delivered: widened to blocks, those of failed and repeated reads too.
    pub read_bytes: u64,
    /// Bytes of memory that are registered with the kernel now.
    pub registered_bytes: u64,
}
