//! A request in flight: it owns its buffer and file until it is completed.
//!
//! Every engine performs [`InFlightRead::next_read`] and passes the result to [`InFlightRead::take_result`], until that
//! returns [`AfterRead::Done`]. [`InFlightRead::read_rest`] is this loop for engines that read in the calling thread.

use std::io;

pub(super) use super::short_read::AfterRead;
use super::short_read::ReadProgress;
use super::{Completion, Failed, FileError, Filled, IoMode, OpenFile, ReadRequest, Span};

/// A request, and how much of it has been read.
#[derive(Debug)]
pub(super) struct InFlightRead {
    request: ReadRequest,
    progress: ReadProgress,
}

/// The next system call to make for a request.
#[derive(Debug)]
pub(super) struct NextRead<'a> {
    pub(super) file: &'a OpenFile,
    pub(super) offset: u64,
    pub(super) bytes: &'a mut [u8],
}

impl InFlightRead {
    /// Begins a request. `Err` holds the completion of a request that needs no read: it wants no bytes, or mapped ones,
    /// or bytes past the end of the file.
    pub(super) fn begin(request: ReadRequest) -> Result<Self, Completion> {
        let token = request.token;
        let result = match request.span() {
            _ if request.len == 0 => Ok(Filled::new(request.buffer, 0..0)),
            Ok(Span { mode: IoMode::Mapped, .. }) => Ok(lend(request)),
            Ok(span) => return Ok(Self { progress: ReadProgress::new(request.range(), span), request }),
            Err(error) => Err(Failed { error, buffer: request.buffer }),
        };
        Err(Completion { token, result })
    }

    pub(super) fn request(&self) -> &ReadRequest {
        &self.request
    }

    /// The read to perform now.
    pub(super) fn next_read(&mut self) -> NextRead<'_> {
        let offset = self.progress.next_offset();
        let bytes = &mut self.request.buffer.as_mut_slice()[self.progress.room()];
        NextRead { file: &self.request.file, offset, bytes }
    }

    /// Number of bytes that are still to be read.
    #[cfg(target_os = "linux")]
    pub(super) fn left_len(&self) -> u64 {
        self.progress.room().len() as u64
    }

    /// Accepts the result of the read that [`next_read`](Self::next_read) returned.
    pub(super) fn take_result(&mut self, read: io::Result<usize>) -> AfterRead {
        self.progress.take_result(&self.request.file, read)
    }

    /// Performs the remaining reads, one after the other. Calls `count` with the number of bytes of each.
    pub(super) fn read_rest(&mut self, mut count: impl FnMut(usize)) -> Result<(), FileError> {
        loop {
            let NextRead { file, offset, bytes } = self.next_read();
            let read = file.read_at(bytes, offset);
            count(*read.as_ref().unwrap_or(&0));
            if let AfterRead::Done(result) = self.take_result(read) {
                return result;
            }
        }
    }

    /// Reads what is in the page cache, if anything, without waiting for a device.
    pub(super) fn read_cached(&mut self, mut count: impl FnMut(usize)) -> AfterRead {
        let NextRead { file, offset, bytes } = self.next_read();
        let Some(read) = file.read_cached_at(bytes, offset).transpose() else { return AfterRead::ReadMore };
        count(*read.as_ref().unwrap_or(&0));
        self.take_result(read)
    }

    /// The completion of a read that is done.
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

/// Lends the mapped bytes of a request that has been checked. Starts to read those that are not in memory.
fn lend(request: ReadRequest) -> Filled {
    let range = request.range();
    request.file.will_need(&range);
    Filled::mapped(request.file, range, request.buffer)
}
