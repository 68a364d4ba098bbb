//! Which thread a ring answers to, and how any other learns that the kernel is done with it.
//!
//! A ring of one thread costs less: the kernel takes no locks for it and does its part when that thread asks, not
//! when a device interrupts. To every other thread it refuses all but to be closed. Then its reads are given up, and
//! nobody is told when that has been done; but a ring lets go of its files last. So it has one end of a pair of
//! sockets for a file, and who holds the other sees it hang up.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use io_uring::IoUring;

/// The thread that a ring answers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tenant {
    /// Every one.
    Any,
    /// The one that enables it; until then it takes no reads.
    First,
    /// This one alone.
    One(ThreadId),
}

impl Tenant {
    pub(super) fn of(io: &IoUring) -> Self {
        if io.params().is_setup_single_issuer() { Self::First } else { Self::Any }
    }

    /// The thread that runs this.
    pub(super) fn here() -> Self {
        Self::One(thread::current().id())
    }

    /// Whether the ring takes orders from the thread that runs this.
    pub(super) fn is_served_here(self) -> bool {
        self == Self::Any || self == Self::First || self == Self::here()
    }
}

/// Hangs up when the kernel has let go of a ring.
#[derive(Debug)]
pub(super) struct Line(UnixStream);

impl Line {
    /// Gives the ring the other end as the file of this number; `None` where it does not take it.
    pub(super) fn to(io: &IoUring, number: u32) -> Option<Self> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        io.submitter().register_files_update(number, &[theirs.as_raw_fd()]).ok()?;
        Some(Self(ours))
    }

    /// Waits until the kernel has let go of the ring; `false` where it has not.
    pub(super) fn hangs_up_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // No time at all would mean for ever.
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
