//! Whether reads of mapped bytes are announced to the system, found out by how long they take.
//!
//! Pages that are not in memory are read one by one when they are touched, all at once after an announcement. The
//! announcement of a sample of 110 KB costs a third of its copy, and is for nothing where the pages are in memory. So
//! reads are announced after one that waited for a device, until they are fast again.
//!
//! A read may also be slow because another program had the processor, or because a page was mapped for the first time.
//! Only page faults that wait for a device count: the system reports their number.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Reads that are announced of a file that has just been opened.
const AT_FIRST: u32 = 16;
/// Reads that are announced after one that waited unannounced: that costs a thousand announcements or more.
const AFTER_A_WAIT: u32 = 4096;
/// Reads that are announced at least after one that was slow although it was announced.
const AFTER_A_SLOW_ONE: u32 = 64;
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

    /// Learns from a read of `len` bytes, all of which were touched. `has_waited` tells whether this thread has waited
    /// for a device since it was asked last; an announced read may wait and not be counted.
    pub(super) fn took(&self, len: usize, time: Duration, has_waited: impl FnOnce() -> bool) {
        let is_slow = time > FAST + Duration::from_nanos(len as u64 / FAST_BYTES_PER_NS);
        match (is_slow, self.is_on()) {
            (true, true) => drop(self.0.fetch_max(AFTER_A_SLOW_ONE, Ordering::Relaxed)),
            (true, false) if has_waited() => self.0.store(AFTER_A_WAIT, Ordering::Relaxed),
            // Two threads may both find a 1: to wrap around would be many announcements, and no harm.
            (false, true) => drop(self.0.fetch_sub(1, Ordering::Relaxed)),
            (_, false) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 110_000;

    /// How many of some reads are announced, each of which takes so long.
    fn read(announcing: &Announcing, times: u32, micros: u64, has_waited: bool) -> u32 {
        let announced = (0..times).filter(|_| {
            let is_on = announcing.is_on();
            announcing.took(LEN, Duration::from_micros(micros), || has_waited);
            is_on
        });
        u32::try_from(announced.count()).unwrap()
    }

    #[test]
    fn fast_reads_are_soon_not_announced_and_those_after_a_wait_are_again() {
        let announcing = Announcing::new();
        assert_eq!(read(&announcing, 1000, 12, false), AT_FIRST);
        assert_eq!(read(&announcing, 1000, 500, true), 999, "all but the one that waited");
        assert_eq!(read(&announcing, 10_000, 12, false), AFTER_A_WAIT);
        assert_eq!(read(&announcing, 10_000, 37, true), 0, "it is as fast as memory");
        assert_eq!(read(&announcing, 2, 38, true), 1);
    }

    #[test]
    fn a_read_that_was_slow_for_another_reason_announces_none() {
        let announcing = Announcing::new();
        assert_eq!(read(&announcing, 1000, 12, false), AT_FIRST);
        assert_eq!(read(&announcing, 1000, 500, false), 0);
    }

    #[test]
    fn announced_reads_go_on_as_long_as_they_are_slow() {
        let announcing = Announcing::new();
        assert_eq!(read(&announcing, 1000, 500, false), 1000);
        assert_eq!(read(&announcing, 1000, 12, false), AFTER_A_SLOW_ONE);
    }
}
