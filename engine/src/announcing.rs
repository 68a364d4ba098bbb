//! Whether reads of mapped bytes are announced to the system, found out by how long they take.
//!
//! Pages that are not in memory are read one by one when they are touched, all at once after an announcement. The
//! announcement of a sample of 110 KB costs a third of its copy, and is for nothing where the pages are in memory. So
//! after a slow read many reads are announced, and none once these were fast.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Reads that are announced of a file that has just been opened.
const AT_FIRST: u32 = 16;
/// Reads that are announced after a slow one. A slow one that was not announced costs a thousand announcements or more.
const AFTER_A_SLOW_ONE: u32 = 4096;
/// A read is slow if it takes longer than this, and a nanosecond for each four bytes: memory is several times as fast.
const FAST: Duration = Duration::from_micros(10);
const FAST_BYTES_PER_NS: u64 = 4;

/// Counts the reads of a file that are still to be announced.
#[derive(Debug)]
pub(super) struct Announcing(AtomicU32);

impl Announcing {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(AT_FIRST))
    }

    /// Whether the next read is announced.
    pub(super) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Learns from a read of `len` bytes, all of which were touched.
    pub(super) fn took(&self, len: usize, time: Duration) {
        if time > FAST + Duration::from_nanos(len as u64 / FAST_BYTES_PER_NS) {
            self.0.store(AFTER_A_SLOW_ONE, Ordering::Relaxed);
        } else if self.is_on() {
            // Two threads may both find a 1: to wrap around would be many announcements, and no harm.
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 110_000;

    fn read(announcing: &Announcing, times: u32, micros: u64) -> u32 {
        let announced = (0..times).filter(|_| {
            let is_on = announcing.is_on();
            announcing.took(LEN, Duration::from_micros(micros));
            is_on
        });
        u32::try_from(announced.count()).unwrap()
    }

    #[test]
    fn fast_reads_are_soon_not_announced_and_slow_ones_are_again() {
        let announcing = Announcing::new();
        assert_eq!(read(&announcing, 1000, 12), AT_FIRST);
        // The first slow one tells.
        assert_eq!(read(&announcing, 1000, 500), 999);
        assert_eq!(read(&announcing, 10_000, 12), AFTER_A_SLOW_ONE);
        assert_eq!(read(&announcing, 10_000, 37), 0);
        assert_eq!(read(&announcing, 2, 38), 1);
    }
}
