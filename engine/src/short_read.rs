//! Short, interrupted and refused reads: which bytes to read next, and what the result of a read means.
//!
//! ```text
//! result of a read          decision
//! ------------------------  -----------------------------------------------------------
//! all wanted bytes          done
//! too few bytes             read the rest; directly, from the last whole block on
//! no whole block more       (direct reads) the end of the file, or the rest is read through the page cache
//! 0 bytes                   error: the file ends before the wanted bytes do
//! EINTR, EAGAIN             the same read again; EAGAIN at most 1000 times in a row
//! EINVAL to a direct read   the file is read through the page cache from now on
//! refusal of an uncached    the same read again; the file's bytes stay in the page cache from now on
//! anything else             error
//! ```
//!
//! This is decided here once, for all reads of samples, by an engine or without one. Where the bytes go is not known
//! here.

use std::io;
use std::ops::Range;

use super::open_file::is_refusal;
use super::{BLOCK_LEN, FileError, IoMode, OpenFile, Span};

/// Reads in a row that may fail with "try again" before this is reported as an error.
const AGAIN_MAX: u32 = 1000;

/// The state of the read of one byte range. Its file is passed to each call, because the request owns the file and this
/// state.
#[derive(Debug)]
pub(super) struct ReadProgress {
    /// The wanted bytes of the file.
    range: Range<u64>,
    span: Span,
    /// Bytes of the span, from its start, that have been read; whole blocks while reads are direct.
    filled: usize,
    /// How the next read is performed. A file that meanwhile falls back to buffered reads does not change this: it
    /// still accepts aligned reads.
    mode: IoMode,
    again_count: u32,
}

/// What to do after a read.
#[derive(Debug)]
pub(super) enum AfterRead {
    /// Perform the next read.
    ReadMore,
    /// Nothing: all wanted bytes have been read, or the read has failed.
    Done(Result<(), FileError>),
}

impl ReadProgress {
    /// Begins to read `span` for the wanted bytes `range`, which is not empty.
    pub(super) fn new(range: Range<u64>, span: Span) -> Self {
        Self { range, mode: span.mode, span, filled: 0, again_count: 0 }
    }

    /// Where in the file the next read begins.
    pub(super) fn next_offset(&self) -> u64 {
        self.span.offset + self.filled as u64
    }

    /// The part of the buffer that the next read fills.
    pub(super) fn room(&self) -> Range<usize> {
        self.filled..self.span.len
    }

    /// Where the wanted bytes are in the buffer.
    pub(super) fn wanted(&self) -> Range<usize> {
        self.span.wanted.clone()
    }

    /// Accepts the result of the read that begins at [`next_offset`](Self::next_offset).
    pub(super) fn take_result(&mut self, file: &OpenFile, result: io::Result<usize>) -> AfterRead {
        match self.apply(file, result) {
            Ok(()) if self.filled >= self.span.wanted.end => AfterRead::Done(Ok(())),
            Ok(()) => AfterRead::ReadMore,
            Err(error) => AfterRead::Done(Err(error)),
        }
    }

    fn apply(&mut self, file: &OpenFile, result: io::Result<usize>) -> Result<(), FileError> {
        match result {
            Ok(0) => Err(self.end_of_file(file, self.next_offset())),
            Ok(read_len) if self.advance(read_len) => {
                self.again_count = 0;
                Ok(())
            }
            // The same read would be repeated forever: at the end of a file that was truncated, or of one
            // whose last block cannot be read directly.
            Ok(_) => match file.end_seen_at(self.range.end) {
                end if end < self.range.end => Err(self.end_of_file(file, end)),
                _ => self.fall_back_to_buffered(file),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.again_count < AGAIN_MAX => {
                self.again_count += 1;
                Ok(())
            }
            Err(error) if file.is_uncached_refusal(&error) && self.again_count < AGAIN_MAX => {
                self.again_count += 1;
                file.give_up_dont_cache();
                Ok(())
            }
            Err(error) if self.mode == IoMode::Direct && is_refusal(&error) => self.fall_back_to_buffered(file),
            Err(error) => Err(self.failed(file, error)),
        }
    }

    /// Counts the bytes of a read. A direct read that ended inside a block is repeated from that block on. Returns
    /// `false` if this would repeat the same read forever.
    fn advance(&mut self, read_len: usize) -> bool {
        let reached = self.filled + read_len;
        let next = match self.mode {
            IoMode::Direct if reached < self.span.wanted.end => reached - reached % BLOCK_LEN,
            _ => reached,
        };
        let advances = next > self.filled;
        self.filled = next;
        advances
    }

    fn fall_back_to_buffered(&mut self, file: &OpenFile) -> Result<(), FileError> {
        self.mode = IoMode::Buffered;
        file.fall_back().map_err(|error| self.failed(file, error))
    }

    fn end_of_file(&self, file: &OpenFile, file_len: u64) -> FileError {
        file.end_of_file(self.range.clone(), file.end_seen_at(file_len))
    }

    fn failed(&self, file: &OpenFile, error: io::Error) -> FileError {
        FileError::Io {
            path: file.shared_path(),
            range: self.range.clone(),
            failed_at: self.next_offset(),
            source: error,
        }
    }

    /// The error for code that panicked while it read.
    pub(super) fn panicked(&self, file: &OpenFile) -> FileError {
        FileError::Panicked { path: file.shared_path(), range: self.range.clone() }
    }
}
