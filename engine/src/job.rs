//! A request on its way: it owns buffer and file until it is completed.
//!
//! Every engine asks with [`Job::next_read`] and hands the answer to [`Job::answered`], until that says it is done; or
//! lets [`Job::read_rest`] do so.

use std::io;

use super::progress::Progress;
pub(super) use super::progress::Step;
use super::{Completion, Failed, FileError, Filled, IoMode, OpenFile, ReadRequest, Span};

/// A request, and how far it is.
#[derive(Debug)]
pub(super) struct Job {
    request: ReadRequest,
    progress: Progress,
}

/// A read to be made.
#[derive(Debug)]
pub(super) struct NextRead<'a> {
    pub(super) file: &'a OpenFile,
    pub(super) offset: u64,
    pub(super) bytes: &'a mut [u8],
}

impl Job {
    /// Begins a request. `Err` has the completion of one that needs no read: it wants no bytes, or mapped ones, or some
    /// that are not there.
    pub(super) fn begin(request: ReadRequest) -> Result<Self, Completion> {
        let token = request.token;
        let result = match request.span() {
            _ if request.len == 0 => Ok(Filled::new(request.buffer, 0..0)),
            Ok(Span { mode: IoMode::Mapped, .. }) => Ok(lend(request)),
            Ok(span) => return Ok(Self { progress: Progress::new(request.range(), span), request }),
            Err(error) => Err(Failed { error, buffer: request.buffer }),
        };
        Err(Completion { token, result })
    }

    pub(super) fn request(&self) -> &ReadRequest {
        &self.request
    }

    /// The bytes to ask for now.
    pub(super) fn next_read(&mut self) -> NextRead<'_> {
        let offset = self.progress.next_offset();
        let bytes = &mut self.request.buffer.as_mut_slice()[self.progress.room()];
        NextRead { file: &self.request.file, offset, bytes }
    }

    /// Bytes that are still to be read.
    #[cfg(target_os = "linux")]
    pub(super) fn left_len(&self) -> u64 {
        self.progress.room().len() as u64
    }

    /// Takes the answer to the read that [`next_read`](Self::next_read) named.
    pub(super) fn answered(&mut self, answer: io::Result<usize>) -> Step {
        self.progress.answered(&self.request.file, answer)
    }

    /// Makes the reads that are left, one after the other. Tells `count` how many bytes each of them brought.
    pub(super) fn read_rest(&mut self, mut count: impl FnMut(usize)) -> Result<(), FileError> {
        loop {
            let NextRead { file, offset, bytes } = self.next_read();
            let answer = file.read_at(bytes, offset);
            count(*answer.as_ref().unwrap_or(&0));
            if let Step::Done(result) = self.answered(answer) {
                return result;
            }
        }
    }

    /// Reads what the page cache holds, if anything, without waiting for a device.
    pub(super) fn read_cached(&mut self, mut count: impl FnMut(usize)) -> Step {
        let NextRead { file, offset, bytes } = self.next_read();
        let Some(answer) = file.read_cached_at(bytes, offset).transpose() else { return Step::More };
        count(*answer.as_ref().unwrap_or(&0));
        self.answered(answer)
    }

    /// The completion of a job that is done.
    pub(super) fn finish(self, result: Result<(), FileError>) -> Completion {
        let buffer = self.request.buffer;
        let result = match result {
            Ok(()) => Ok(Filled::new(buffer, self.progress.wanted())),
            Err(error) => Err(Failed { error, buffer }),
        };
        Completion { token: self.request.token, result }
    }

    /// The error for code that panicked while it read.
    pub(super) fn panicked(&self) -> FileError {
        self.progress.panicked(&self.request.file)
    }
}

/// The bytes of a request for mapped ones, which was checked. What of them is not in memory begins to be read.
fn lend(request: ReadRequest) -> Filled {
    request.file.announce(request.range());
    let range = request.range();
    Filled::mapped(request.file, range, request.buffer)
}
