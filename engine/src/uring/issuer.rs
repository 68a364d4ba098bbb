//! Which thread a ring accepts calls from, and how another thread learns that the kernel has closed the ring.
//!
//! A ring with a single issuer costs less: the kernel takes no locks for it and does its part when that thread enters
//! the kernel, not when a device interrupts. Other threads can only close it. The kernel then cancels its reads, and
//! does not report when it has done so; but a ring releases its files last. So one end of a pair of sockets is
//! registered as a file of the ring, and a reader of the other end sees end of file when the ring is closed.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use io_uring::IoUring;

/// The thread that may submit reads to a ring and take its completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Issuer {
    /// Any thread.
    Any,
    /// The thread that will enable the ring; until then it accepts no reads.
    NotYetEnabled,
    /// Only this thread.
    One(ThreadId),
}

impl Issuer {
    pub(super) fn of(io: &IoUring) -> Self {
        if io.params().is_setup_single_issuer() { Self::NotYetEnabled } else { Self::Any }
    }

    /// The calling thread.
    pub(super) fn here() -> Self {
        Self::One(thread::current().id())
    }

    /// Whether the ring accepts calls from the calling thread.
    pub(super) fn may_issue_here(self) -> bool {
        self == Self::Any || self == Self::NotYetEnabled || self == Self::here()
    }
}

/// Reports when the kernel has closed a ring.
#[derive(Debug)]
pub(super) struct CloseSignal(UnixStream);

impl CloseSignal {
    /// Registers the other end with the ring as the file of this number; `None` if the kernel refuses.
    pub(super) fn register(io: &IoUring, number: u32) -> Option<Self> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        io.submitter().register_files_update(number, &[theirs.as_raw_fd()]).ok()?;
        Some(Self(ours))
    }

    /// Waits until the kernel has closed the ring; `false` if it has not within `timeout`.
    pub(super) fn wait_closed(&mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // A timeout of zero would mean forever.
            if left.is_zero() || self.0.set_read_timeout(Some(left)).is_err() {
                return false;
            }
            match self.0.read(&mut [0]) {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}
