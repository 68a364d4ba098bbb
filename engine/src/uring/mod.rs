//! The engine for Linux: reads go to the kernel through a ring that both share, hundreds with one system call.
//!
//! ```text
//! submit -> queue of the file's device -> slot -> ring -> kernel -> ring -> slot -> complete
//!           (bytes in flight are bounded)
//! ```
//!
//! Each device has its own queue and its own bound of bytes in flight; all share one ring. A slot owns a request until
//! the kernel has answered it. Files and memory that are used often are made known to the kernel once.
//!
//! A ring answers to one thread or, at more cost, to any. Sources without an open file are read inside `complete`, one
//! after the other.

#[cfg(not(target_os = "linux"))]
mod absent;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod queues;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the kernel writes into memory that it was told of")]
mod ring;
#[cfg(target_os = "linux")]
mod setup;
#[cfg(target_os = "linux")]
mod slots;
#[cfg(target_os = "linux")]
mod tenant;

use std::time::Duration;

use super::DRAIN_MAX;

#[cfg(not(target_os = "linux"))]
pub use absent::UringEngine;
#[cfg(target_os = "linux")]
pub use engine::UringEngine;

/// How an io_uring engine reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringOptions {
    /// Bytes in flight on each device; one read is always in flight where there is any.
    pub in_flight_len_max: u64,
    /// Which threads may use it while reads are in flight.
    pub owner: UringOwner,
    /// Instead of [`DRAIN_MAX`]; for tests.
    #[doc(hidden)]
    pub drain_max: Duration,
}

/// Which threads may use an engine while it has reads in flight. With none in flight, every one may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UringOwner {
    /// The one that first asked for completions of those reads: any other is refused, and nothing is lost by that.
    /// Reads cost less CPU time, from Linux 6.1 on; before that it is as if all threads might use it.
    ///
    /// An engine that goes from thread to thread makes itself a new ring in each.
    OneThread,
    /// Every one, one at a time.
    #[default]
    AnyThread,
}

impl Default for UringOptions {
    /// 8 MiB: enough to keep an NVMe drive busy, and little enough for a read to be answered soon.
    fn default() -> Self {
        Self { in_flight_len_max: 8 << 20, owner: UringOwner::default(), drain_max: DRAIN_MAX }
    }
}
