//! What an epoch has done, in numbers.

use std::time::Duration;

use grainstore_store::Location;

use crate::engine::IoMode;

/// What an epoch has done so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochStats {
    /// Samples handed out.
    pub samples: u64,
    /// Their raw bytes.
    pub payload_bytes: u64,
    /// Their stored bytes.
    pub stored_bytes: u64,
    /// Bytes that the engine read from files: widened to blocks by direct I/O, and what was read ahead too.
    pub read_bytes: u64,
    /// Reads asked of the engine.
    pub request_count: u64,
    /// How long the caller waited for reads.
    pub wait: Duration,
    /// The most bytes of memory that buffers took at once, batches not counted.
    pub held_bytes_max: u64,
    /// The engine's name.
    pub engine: &'static str,
    /// How files are read: buffered as soon as direct I/O was refused for one of them.
    pub io: IoMode,
}

impl EpochStats {
    pub(super) fn count_sample(&mut self, location: &Location) {
        self.samples += 1;
        self.payload_bytes += location.raw_len();
        self.stored_bytes += location.stored_len;
    }
}

impl Default for EpochStats {
    fn default() -> Self {
        Self {
            samples: 0,
            payload_bytes: 0,
            stored_bytes: 0,
            read_bytes: 0,
            request_count: 0,
            wait: Duration::ZERO,
            held_bytes_max: 0,
            engine: "",
            io: IoMode::Buffered,
        }
    }
}
