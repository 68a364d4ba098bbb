//! The engine for io_uring: one system call submits hundreds of reads through queues shared with the kernel.
//!
//! ```text
//! submit -> queue of the file's device -> slot -> submission queue -> kernel -> completion queue -> slot -> complete
//!           (bytes in flight are bounded)
//! ```
//!
//! Each device has its own queue and its own bound of bytes in flight; all share one ring. A slot owns a request until
//! the kernel has completed it. Files and buffers that are used often are registered with the kernel.
//!
//! A ring accepts calls from one thread or, at a higher cost, from any. Readers without a file descriptor are read
//! inside `complete`, one after the other.
//!
//! | file | contents |
//! | --- | --- |
//! | `engine.rs` | the [`Engine`](crate::Engine): moves requests through the queues and the ring |
//! | `device_queues.rs` | what waits, by device |
//! | `ring.rs` | submission and completion: the only `unsafe` code here |
//! | `slots.rs` | the table of what is in flight |
//! | `registered_files.rs`, `registered_buffers.rs` | what the kernel knows by number |
//! | `issuer.rs` | which thread a ring accepts calls from |
//! | `setup.rs` | making a ring, and the reason if there is none |

#[cfg(target_os = "linux")]
mod device_queues;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod issuer;
#[cfg(target_os = "linux")]
mod registered_buffers;
#[cfg(target_os = "linux")]
mod registered_files;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the kernel writes to memory that submissions name")]
mod ring;
#[cfg(target_os = "linux")]
mod setup;
#[cfg(target_os = "linux")]
mod slots;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::time::Duration;

use super::DRAIN_MAX;

#[cfg(target_os = "linux")]
pub use engine::UringEngine;
#[cfg(not(target_os = "linux"))]
pub use unsupported::UringEngine;

/// How an io_uring engine reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringOptions {
    /// The most bytes in flight on each device; a longer read is in flight alone.
    pub in_flight_len_max: u64,
    /// Which threads may use it while reads are in flight.
    pub owner: UringOwner,
    /// Instead of [`DRAIN_MAX`]; for tests.
    #[doc(hidden)]
    pub drain_max: Duration,
}

/// Which threads may use an engine while it has reads in flight. With none in flight, every thread may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UringOwner {
    /// The thread that first called `complete` for those reads. Other threads get an error, and no read is lost by
    /// that. Reads cost less CPU time, from Linux 6.1 on; before that, this is the same as
    /// [`AnyThread`](Self::AnyThread).
    ///
    /// An engine that moves from thread to thread makes a new ring in each.
    OneThread,
    /// Any thread, one at a time.
    #[default]
    AnyThread,
}

impl Default for UringOptions {
    /// 8 MiB in flight: enough to keep an NVMe drive busy, and little enough for a short latency.
    fn default() -> Self {
        Self { in_flight_len_max: 8 << 20, owner: UringOwner::default(), drain_max: DRAIN_MAX }
    }
}
