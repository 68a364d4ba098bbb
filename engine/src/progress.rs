//! How far the read of a range is: which bytes to ask for next, and what an answer of the system means for it.
//!
//! What a short, interrupted or refused read means is decided here, once for all engines and for reads without one.
//! Where the bytes land is not known here.

use std::io;
use std::ops::Range;

use super::open_file::is_refusal;
use super::{BLOCK_LEN, FileError, IoMode, OpenFile, Span};

/// Reads in a row that may say "try again" before that is told as an error.
const AGAIN_MAX: u32 = 1000;

/// A read on its way. It is told its file anew each time, since the request that owns both lends it.
#[derive(Debug)]
pub(super) struct Progress {
    /// The wanted bytes of the file.
    range: Range<u64>,
    span: Span,
    /// Bytes of the span, from its start, that are there; whole blocks while direct.
    filled: usize,
    /// How the next read is done. A file that falls back meanwhile does not change it: it takes
    /// direct reads all the same.
    mode: IoMode,
    again_count: u32,
}

/// What comes after an answer.
#[derive(Debug)]
pub(super) enum Step {
    /// The next read.
    More,
    /// Nothing: all wanted bytes are there, or never will be.
    Done(Result<(), FileError>),
}

impl Progress {
    /// The read of `range`, which is not empty, by `span`.
    pub(super) fn new(range: Range<u64>, span: Span) -> Self {
        Self { range, mode: span.mode, span, filled: 0, again_count: 0 }
    }

    /// Where in the file the next read begins.
    pub(super) fn next_offset(&self) -> u64 {
        self.span.offset + self.filled as u64
    }

    /// Where in the buffer the next read lands.
    pub(super) fn room(&self) -> Range<usize> {
        self.filled..self.span.len
    }

    /// Where in the buffer the wanted bytes lie.
    pub(super) fn wanted(&self) -> Range<usize> {
        self.span.wanted.clone()
    }

    /// Takes the answer to the read that begins at [`next_offset`](Self::next_offset).
    pub(super) fn answered(&mut self, file: &OpenFile, answer: io::Result<usize>) -> Step {
        match self.take(file, answer) {
            Ok(()) if self.filled >= self.span.wanted.end => Step::Done(Ok(())),
            Ok(()) => Step::More,
            Err(error) => Step::Done(Err(error)),
        }
    }

    fn take(&mut self, file: &OpenFile, answer: io::Result<usize>) -> Result<(), FileError> {
        match answer {
            Ok(0) => Err(self.end_of_file(file, self.next_offset())),
            Ok(read_len) if self.advance(read_len) => {
                self.again_count = 0;
                Ok(())
            }
            // The same read would be repeated for ever: at the end of a file that was cut, or of one
            // whose last block cannot be read directly.
            Ok(_) => match file.end_seen_at(self.range.end) {
                end if end < self.range.end => Err(self.end_of_file(file, end)),
                _ => self.turn_to_buffered(file),
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
            Err(error) if self.mode == IoMode::Direct && is_refusal(&error) => self.turn_to_buffered(file),
            Err(error) => Err(self.failed(file, error)),
        }
    }

    /// Counts what a read delivered. A direct read that ended inside a block is repeated from that
    /// block on; `false` where this would repeat the same read for ever.
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

    fn turn_to_buffered(&mut self, file: &OpenFile) -> Result<(), FileError> {
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
