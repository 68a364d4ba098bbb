//! What an epoch has done, in numbers.

use std::time::Duration;

use grainstore_store::Location;

use crate::engine::IoMode;

/// What an epoch has done up to the batch that was returned last. Where more epochs follow, what was read for the
/// next one meanwhile is counted here, and not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochStats {
    /// Samples returned.
    pub samples: u64,
    /// Samples that were skipped, since they cannot be read or are damaged.
    pub skipped_samples: u64,
    /// Raw bytes of the samples returned.
    pub payload_bytes: u64,
    /// Stored bytes of the samples returned.
    pub stored_bytes: u64,
    /// Samples of extents that were in the cache, or being read into it, so that nothing was read for them.
    pub cached_samples: u64,
    /// Bytes that the engine read from files: widened to blocks by direct I/O, and what was read ahead too. Of mapped
    /// files, bytes that were requested.
    pub read_bytes: u64,
    /// Reads submitted to the engine.
    pub request_count: u64,
    /// How long the caller waited for batches.
    pub wait: Duration,
    /// How the thread that makes the batches spent its time.
    pub stages: Stages,
    /// Threads that verify and copy, that thread included.
    pub check_threads: usize,
    /// The most bytes of buffers that samples being read and drawn from took at once. Samples that are read straight
    /// into their batch are not counted.
    pub held_bytes_max: u64,
    /// Bytes of the slabs that these buffers are cut from; a very long buffer has memory of its own.
    pub slab_bytes: u64,
    /// Bytes of memory that are registered with the kernel.
    pub registered_bytes: u64,
    /// The engine's name.
    pub engine: &'static str,
    /// How files are read: buffered as soon as direct I/O was refused for one of them.
    pub io: IoMode,
    /// What the engine cannot use here, as sentences.
    pub remarks: Vec<String>,
}

/// Time spent in each stage of making batches. Verifying and copying are added up over threads; the others do not
/// overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Planning: which samples, where their bytes are, where they go.
    pub prepare: Duration,
    /// Handing reads to the engine.
    pub post: Duration,
    /// Waiting for reads.
    pub wait_for_reads: Duration,
    /// Waiting for the caller to take batches.
    pub wait_for_caller: Duration,
    /// Verifying checksums.
    pub verify: Duration,
    /// Copying and decoding payloads into batches.
    pub copy: Duration,
}

impl EpochStats {
    /// Mean bytes of a read; 0 before the first.
    #[must_use]
    pub fn mean_request_bytes(&self) -> u64 {
        self.read_bytes.checked_div(self.request_count).unwrap_or(0)
    }

    /// Subtracts what was done before this epoch.
    pub(super) fn subtract(&mut self, before: &Self) {
        self.cached_samples -= before.cached_samples;
        self.read_bytes -= before.read_bytes;
        self.request_count -= before.request_count;
        self.stages.subtract(&before.stages);
    }

    pub(super) fn count_sample(&mut self, location: &Location) {
        self.samples += 1;
        self.payload_bytes += location.raw_len();
        self.stored_bytes += location.stored_len;
    }
}

impl Stages {
    fn subtract(&mut self, before: &Self) {
        let Self { prepare, post, wait_for_reads, wait_for_caller, verify, copy } = self;
        *prepare -= before.prepare;
        *post -= before.post;
        *wait_for_reads -= before.wait_for_reads;
        *wait_for_caller -= before.wait_for_caller;
        *verify -= before.verify;
        *copy -= before.copy;
    }
}

impl Default for EpochStats {
    fn default() -> Self {
        Self {
            samples: 0,
            skipped_samples: 0,
            cached_samples: 0,
            payload_bytes: 0,
            stored_bytes: 0,
            read_bytes: 0,
            request_count: 0,
            wait: Duration::ZERO,
            stages: Stages::default(),
            check_threads: 1,
            held_bytes_max: 0,
            slab_bytes: 0,
            registered_bytes: 0,
            engine: "",
            io: IoMode::Buffered,
            remarks: Vec::new(),
        }
    }
}
