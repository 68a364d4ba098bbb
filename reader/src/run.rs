//! A run: consecutive samples of one segment, fetched with one read.

use std::ops::Range;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Dataset, Location};

use crate::ReadError;
use crate::engine::{Buffer, Filled, ReadRequest, Source};

/// Bytes of a segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) segment: usize,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Run {
    /// From the start of the first sample of `ordinals` to the end of the last, gaps between them included. They
    /// are not empty, and lie in one segment.
    pub(crate) fn of_samples(dataset: &Dataset, ordinals: &Range<u64>) -> Result<Self, ReadError> {
        let first = dataset.locate(ordinals.start)?;
        let mut run = Self::of_sample(&first);
        if ordinals.end - ordinals.start > 1 {
            run.extend_to(&dataset.locate(ordinals.end - 1)?);
        }
        Ok(run)
    }

    pub(crate) fn of_sample(location: &Location) -> Self {
        Self { segment: location.segment, offset: location.offset, len: location.stored_len }
    }

    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Makes the run end where a later sample of the segment ends.
    pub(crate) fn extend_to(&mut self, location: &Location) {
        self.len = Self::of_sample(location).end().saturating_sub(self.offset);
    }

    /// Whether the sample's bytes lie in the run.
    pub(crate) fn holds(&self, location: &Location) -> bool {
        let sample = Self::of_sample(location);
        self.segment == sample.segment && self.offset <= sample.offset && sample.end() <= self.end()
    }

    /// Bytes of memory that its buffer takes, at most: whole blocks at both ends, and the slack that aligns it.
    pub(crate) fn memory_len_max(&self) -> u64 {
        const BLOCK: u64 = crate::engine::BLOCK_LEN as u64;
        if self.len == 0 { 0 } else { self.len.saturating_add(3 * BLOCK) }
    }

    /// The read that fetches it, into the buffer that `take` finds for so many bytes.
    pub(crate) fn request(
        &self,
        source: Arc<Source>,
        token: u64,
        take: impl FnOnce(usize) -> Result<Buffer, ReadError>,
    ) -> Result<ReadRequest, ReadError> {
        let len = to_usize(self.len);
        let buffer = take(source.buffer_len(self.offset, len))?;
        Ok(ReadRequest { source, offset: self.offset, len, buffer, token })
    }

    /// The stored bytes of a sample in the bytes of its run; none where the run does not hold it.
    pub(crate) fn stored<'a>(&self, filled: &'a Filled, location: &Location) -> &'a [u8] {
        let start = location.offset.saturating_sub(self.offset);
        let end = start.saturating_add(location.stored_len);
        filled.bytes().get(to_usize(start)..to_usize(end)).unwrap_or_default()
    }
}

/// Refuses an allocation that the system cannot serve, before a caller that cannot be told makes it.
pub(crate) fn check_memory(len: usize) -> Result<(), ReadError> {
    const SURELY_THERE: usize = 64 << 20;
    if len <= SURELY_THERE {
        return Ok(());
    }
    let no_memory = |_| ReadError::NoMemory { len: len as u64 };
    let mut probe = Vec::<u8>::new();
    probe.try_reserve_exact(len).map_err(no_memory)?;
    // Else the optimiser may leave out an allocation that nobody uses.
    std::hint::black_box(&probe);
    Ok(())
}
