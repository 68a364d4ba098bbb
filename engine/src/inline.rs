//! Reads in the caller's thread: a request without an engine, and bytes that need no buffer.

use std::ops::Range;

use grainstore_format::to_usize;

use super::job::Job;
use super::progress::{Progress, Step};
use super::{Completion, FileError, IoMode, OpenFile, ReadRequest};

/// Does a request now, in this thread.
#[must_use]
pub fn read_now(request: ReadRequest) -> Completion {
    finish_now(Job::begin(request), |_| {})
}

/// Does what is left of a request. Tells `count` how many bytes each read brought.
pub(super) fn finish_now(begun: Result<Job, Completion>, count: impl FnMut(usize)) -> Completion {
    match begun {
        Ok(mut job) => {
            let result = job.read_rest(count);
            job.finish(result)
        }
        Err(completion) => completion,
    }
}

/// Appends bytes of a buffered or mapped file to `out`, with no memory in between. They are not moved where `out` has
/// room for them.
pub fn append_now(file: &OpenFile, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), FileError> {
    if range.end > file.file_len() {
        return Err(file.end_of_file(range, file.file_len()));
    }
    if let Some(bytes) = file.mapped(range.clone()) {
        file.announce(range);
        out.extend_from_slice(bytes);
        return Ok(());
    }
    match to_usize(range.end.saturating_sub(range.start)) {
        0 => Ok(()),
        len => append_read(file, range, len, out),
    }
}

fn append_read(file: &OpenFile, range: Range<u64>, len: usize, out: &mut Vec<u8>) -> Result<(), FileError> {
    let start = out.len();
    out.reserve(len);
    let mut progress = Progress::new(range.clone(), IoMode::Buffered.span(range.start, len));
    let result = loop {
        let answer = file.append_at(out, progress.next_offset());
        if let Step::Done(result) = progress.answered(file, answer) {
            break result;
        }
    };
    // The room may have been larger than what was wanted.
    out.truncate(if result.is_ok() { start + len } else { start });
    result
}
