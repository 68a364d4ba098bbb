//! The work done in a period of time, and the watch that measures it.

use std::iter::Sum;
use std::time::{Duration, Instant};

use grainstore_reader::EpochStats;

use crate::clock::process_cpu;

/// The work done in a period of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadWork {
    /// Samples delivered.
    pub(crate) samples: u64,
    /// Bytes of their payloads, decoded.
    pub(crate) payload_bytes: u64,
    /// Bytes of their payloads, as stored.
    pub(crate) stored_bytes: u64,
    /// Bytes that files delivered; 0 if unknown.
    pub(crate) read_bytes: u64,
    /// Number of reads; 0 if unknown.
    pub(crate) requests: u64,
    /// How long it took.
    pub(crate) elapsed: Duration,
    /// CPU time of all threads of the process.
    pub(crate) cpu: Duration,
}

impl ReadWork {
    /// The work that was done after an earlier moment of the same period.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            samples: self.samples.saturating_sub(earlier.samples),
            payload_bytes: self.payload_bytes.saturating_sub(earlier.payload_bytes),
            stored_bytes: self.stored_bytes.saturating_sub(earlier.stored_bytes),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            requests: self.requests.saturating_sub(earlier.requests),
            elapsed: self.elapsed.saturating_sub(earlier.elapsed),
            cpu: self.cpu.saturating_sub(earlier.cpu),
        }
    }

    /// A number of things per second; always finite.
    pub(crate) fn per_second(self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// CPU seconds of all threads per 10^9 bytes; `None` if there are no bytes.
    pub(crate) fn cpu_s_per_gb(self) -> Option<f64> {
        (self.payload_bytes > 0).then(|| self.cpu.as_secs_f64() / (self.payload_bytes as f64 / 1e9))
    }
}

impl Sum for ReadWork {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            samples: sum.samples + part.samples,
            payload_bytes: sum.payload_bytes + part.payload_bytes,
            stored_bytes: sum.stored_bytes + part.stored_bytes,
            read_bytes: sum.read_bytes + part.read_bytes,
            requests: sum.requests + part.requests,
            elapsed: sum.elapsed + part.elapsed,
            cpu: sum.cpu + part.cpu,
        })
    }
}

/// A stopwatch, running from its creation.
pub(crate) struct Watch {
    started: Instant,
    cpu_before: Duration,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), cpu_before: process_cpu() }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The times until now, with no work counted.
    pub(crate) fn work(&self) -> ReadWork {
        let cpu = process_cpu().saturating_sub(self.cpu_before);
        ReadWork { elapsed: self.elapsed(), cpu, ..ReadWork::default() }
    }

    /// The reads done until now.
    pub(crate) fn work_of_reads(&self, done: ReadWork) -> ReadWork {
        ReadWork { requests: done.requests, read_bytes: done.read_bytes, ..self.work() }
    }

    /// The work of an epoch until now.
    pub(crate) fn work_of(&self, stats: &EpochStats) -> ReadWork {
        ReadWork {
            samples: stats.samples,
            payload_bytes: stats.payload_bytes,
            stored_bytes: stats.stored_bytes,
            read_bytes: stats.read_bytes,
            requests: stats.request_count,
            ..self.work()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_since_a_moment_and_the_work_before_it_are_all_of_it() {
        let work = |n: u32| ReadWork {
            samples: n.into(),
            payload_bytes: u64::from(n) * 10,
            stored_bytes: u64::from(n) * 9,
            read_bytes: u64::from(n) * 11,
            requests: u64::from(n) * 2,
            elapsed: Duration::from_secs(n.into()),
            cpu: Duration::from_millis(n.into()),
        };
        assert_eq!([work(3), work(7).since(work(3))].into_iter().sum::<ReadWork>(), work(7));
        assert_eq!(work(4).per_second(10), 2.5);
    }

    #[test]
    fn nothing_in_no_time_divides_by_nothing() {
        assert_eq!(ReadWork::default().per_second(0), 0.0);
        assert!(ReadWork::default().per_second(1).is_finite());
        assert_eq!(ReadWork::default().cpu_s_per_gb(), None);
    }
}
