//! A pipe as a device that answers when the test writes to it, and a check for the kinds of rings that the kernel has.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr, reason = "each program uses its part, and may fail")]

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use grainstore_engine::{IoMode, OpenFile, ReadAt, Wait};
use io_uring::{IoUring, cqueue, squeue};

/// A short wait, in which an engine certainly has started its reads.
pub(crate) const A_WHILE: Wait = Wait::Within { count: 1, timeout: Duration::from_millis(5) };

/// A device that answers with what is written into it, and reports a length of 100 bytes.
struct Pipe(PipeReader);

impl ReadAt for Pipe {
    fn read_at(&self, bytes: &mut [u8], _offset: u64) -> io::Result<usize> {
        (&self.0).read(bytes)
    }

    fn file_len(&self) -> io::Result<u64> {
        Ok(100)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

pub(crate) fn pipe() -> (Arc<OpenFile>, PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    (Arc::new(OpenFile::from_reader("pipe", Pipe(reader), IoMode::Buffered).unwrap()), writer)
}

/// Whether the kernel has rings for one thread. Without them, every thread may use an engine for one thread.
pub(crate) fn has_rings_of_one_thread() -> bool {
    let built = IoUring::<squeue::Entry, cqueue::Entry>::builder().setup_single_issuer().setup_defer_taskrun().build(1);
    built.inspect_err(|error| eprintln!("there is no ring of one thread: {error}: not tested")).is_ok()
}

/// Runs `work` in another thread.
pub(crate) fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}
