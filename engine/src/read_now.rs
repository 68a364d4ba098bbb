//! Reads in the caller's thread: a request without an engine, and bytes that go straight into a vector.

use std::ops::Range;

use grainstore_format::to_usize;

use super::in_flight::InFlightRead;
use super::short_read::{AfterRead, ReadProgress};
use super::{Completion, FileError, IoMode, OpenFile, ReadRequest};

/// Performs a request now, in this thread.
#[must_use]
pub fn read_now(request: ReadRequest) -> Completion {
    finish_now(InFlightRead::begin(request), |_| {})
}

/// Performs the remaining reads of a request. Calls `count` with the number of bytes of each read.
pub(super) fn finish_now(begun: Result<InFlightRead, Completion>, count: impl FnMut(usize)) -> Completion {
    match begun {
        Ok(mut job) => {
            let result = job.read_rest(count);
            job.finish(result)
        }
        Err(completion) => completion,
    }
}

/// Appends bytes of a buffered file to `out`, without a buffer in between. `out` is not reallocated if it has room for
/// them.
///
/// # Errors
/// If the bytes cannot be read, or the file ends before them.
pub fn append_now(file: &OpenFile, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), FileError> {
    if range.end > file.file_len() {
        return Err(file.end_of_file(range, file.file_len()));
    }
    match to_usize(range.end.saturating_sub(range.start)) {
        0 => Ok(()),
        len => append_read(file, range, len, out),
    }
}

fn append_read(file: &OpenFile, range: Range<u64>, len: usize, out: &mut Vec<u8>) -> Result<(), FileError> {
    let start = out.len();
    out.reserve(len);
    let mut progress = ReadProgress::new(range.clone(), IoMode::Buffered.span(range.start, len));
    let result = loop {
        let read = file.append_at(out, progress.next_offset());
        if let AfterRead::Done(result) = progress.take_result(file, read) {
            break result;
        }
    };
    // The spare capacity may have been larger than what was wanted.
    out.truncate(if result.is_ok() { start + len } else { start });
    result
}
