//! Reads of segments, in flight in the engine: submitted here, waited for here, and timed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_store::Collection;

use super::stats::EpochStats;
use crate::ReadError;
use crate::byte_range::ByteRange;
use crate::engine::{Buffer, Completion, Engine, Wait};
use crate::open_files::OpenFiles;
use crate::read_timeout::ReadTimeout;

/// The engine of an epoch and the files that it reads.
pub(super) struct SegmentReads {
    pub(super) dataset: Collection,
    pub(super) files: Arc<OpenFiles>,
    pub(super) engine: Box<dyn Engine>,
    pub(super) timeout: ReadTimeout,
    /// Called before it waits for a read.
    pub(super) before_wait: Box<dyn Fn() + Send>,
    pub(super) times: ReadTimes,
}

/// Time spent so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadTimes {
    /// Handing reads to the engine.
    pub(super) post: Duration,
    pub(super) wait: Duration,
}

impl SegmentReads {
    /// Submits the read of a byte range into the buffer that `take` returns for a length. Returns the bytes of memory
    /// that it takes.
    pub(super) fn submit(
        &mut self,
        range: ByteRange,
        token: u64,
        take: impl FnOnce(usize, &mut dyn Engine) -> Result<Buffer, ReadError>,
    ) -> Result<u64, ReadError> {
        let file = self.files.of(range.segment)?;
        let engine = self.engine.as_mut();
        let request = range.request(file, token, |len| take(len, engine))?;
        let memory_len = match request.buffer.capacity() as u64 {
            // Mapped bytes need no buffer. They take memory all the same.
            0 => range.blocks_len(),
            capacity => capacity,
        };
        let begin = Instant::now();
        let submitted = self.engine.submit(request);
        self.times.post += begin.elapsed();
        submitted?;
        Ok(memory_len)
    }

    /// Waits until some read has completed. `needed` is the byte range that the caller needs, for the error.
    pub(super) fn wait(&mut self, needed: ByteRange, out: &mut Vec<Completion>) -> Result<(), ReadError> {
        if self.engine.in_flight() == 0 {
            return Err(ReadError::bug("a caller waits for bytes that no read delivers"));
        }
        (self.before_wait)();
        let begin = Instant::now();
        let result = self.timeout.wait(self.engine.as_mut(), 1, out, || needed.shown(&self.dataset));
        self.times.wait += begin.elapsed();
        result
    }

    /// Starts reads that are only queued and takes what has arrived, without waiting.
    pub(super) fn poll(&mut self, out: &mut Vec<Completion>) -> Result<(), ReadError> {
        if self.engine.in_flight() == 0 {
            return Ok(());
        }
        let begin = Instant::now();
        let result = self.engine.complete(Wait::None, out);
        self.times.post += begin.elapsed();
        Ok(result?)
    }

    /// Waits a moment for reads, when there is nothing else to do; `false` where none is in flight.
    pub(super) fn idle(&mut self, out: &mut Vec<Completion>) -> Result<bool, ReadError> {
        const MOMENT: Duration = Duration::from_millis(2);
        if self.engine.in_flight() == 0 {
            return Ok(false);
        }
        self.engine.complete(Wait::Within { count: 1, timeout: MOMENT }, out)?;
        Ok(true)
    }

    /// Whether one more read may be in flight, so that open files do not exhaust the descriptors.
    pub(super) fn has_room(&self) -> bool {
        self.engine.in_flight() < self.files.requests_max()
    }

    /// Adds what it knows to the statistics.
    pub(super) fn count_into(&self, stats: &mut EpochStats) {
        let done = self.engine.stats();
        stats.read_bytes = done.read_bytes;
        stats.request_count = done.request_count;
        stats.registered_bytes = done.registered_bytes;
        stats.stages.post = self.times.post;
        stats.stages.wait_for_reads = self.times.wait;
        stats.io = self.files.mode();
        stats.engine = self.engine.name();
        stats.remarks = self.engine.remarks();
    }
}
