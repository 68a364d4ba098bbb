//! Measures effort: time, CPU and device.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::proc_io::device_read_bytes;

/// Runs from `start` to `stop`.
#[derive(Debug)]
pub struct Meter {
    begin: Instant,
    cpu: Duration,
    read_bytes: u64,
}

/// The effort between start and stop.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Seconds by the clock.
    pub wall_s: f64,
    /// Seconds of all processors together, user and system.
    pub cpu_s: f64,
    /// Bytes read from devices; `None` if the kernel does not count them.
    pub read_bytes: Option<u64>,
}

impl Meter {
    /// Begins.
    #[must_use]
    pub fn start() -> Self {
        Self { read_bytes: device_read_bytes(), cpu: process_cpu(), begin: Instant::now() }
    }

    /// Seconds so far.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// Ends.
    #[must_use]
    pub fn stop(self) -> Effort {
        let wall_s = self.elapsed_s();
        let cpu = process_cpu().saturating_sub(self.cpu);
        let read_bytes = device_read_bytes().saturating_sub(self.read_bytes);
        Effort { wall_s, cpu_s: cpu.as_secs_f64(), read_bytes: Some(read_bytes).filter(|&bytes| bytes > 0) }
    }
}

impl Effort {
    /// CPU seconds for 10^9 bytes.
    #[must_use]
    pub fn cpu_s_per_gb(&self, bytes: u64) -> f64 {
        self.cpu_s / (bytes as f64 / 1e9)
    }

    /// Bytes fetched for each of `bytes`.
    #[must_use]
    pub fn amplification(&self, bytes: u64) -> Option<f64> {
        self.read_bytes.map(|read| read as f64 / bytes as f64)
    }
}

/// CPU time of this process, including threads that have ended, without child processes.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}
