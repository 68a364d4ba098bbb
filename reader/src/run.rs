//! A run: consecutive samples of one segment, fetched with one read.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Location};

use crate::ReadError;
use crate::engine::{BLOCK_LEN, Buffer, Filled, OpenFile, ReadRequest};

/// A gap between samples that is read over rather than around: about what a device reads anyway.
pub(crate) const GAP_LEN_MAX: u64 = 4 << 10;

/// Bytes of a segment's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) segment: usize,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Run {
    /// From the start of the first sample of `ordinals` to the end of the last, gaps between them included. They
    /// are not empty, and lie in one segment.
    pub(crate) fn of_samples(dataset: &Collection, ordinals: &Range<u64>) -> Result<Self, ReadError> {
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

    /// File and bytes, for a message.
    pub(crate) fn shown(&self, dataset: &Collection) -> (PathBuf, Range<u64>) {
        (dataset.segment_path(self.segment).to_owned(), self.offset..self.end())
    }

    /// This run and the one that follows it on the device, with at most a small gap between them.
    pub(crate) fn joined(&self, next: &Self) -> Option<Self> {
        let gap = next.offset.checked_sub(self.end())?;
        let len = next.end().checked_sub(self.offset)?;
        (self.segment == next.segment && gap <= GAP_LEN_MAX).then_some(Self { len, ..*self })
    }

    /// Makes the run end where a later sample of the segment ends.
    pub(crate) fn extend_to(&mut self, location: &Location) {
        self.len = Self::of_sample(location).end().saturating_sub(self.offset);
    }

    /// Whether all of another run's bytes lie in this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.segment == other.segment && self.offset <= other.offset && other.end() <= self.end()
    }

    /// Whether the sample's bytes lie in the run.
    pub(crate) fn holds(&self, location: &Location) -> bool {
        self.covers(&Self::of_sample(location))
    }

    /// Bytes of the whole blocks that it lies in: what a direct read needs.
    pub(crate) fn blocks_len(&self) -> u64 {
        const BLOCK: u64 = BLOCK_LEN as u64;
        if self.len == 0 {
            return 0;
        }
        let end = self.end().checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
        end - self.offset / BLOCK * BLOCK
    }

    /// The read that fetches it, into the buffer that `take` finds for so many bytes.
    pub(crate) fn request(
        &self,
        source: Arc<OpenFile>,
        token: u64,
        take: impl FnOnce(usize) -> Result<Buffer, ReadError>,
    ) -> Result<ReadRequest, ReadError> {
        let len = to_usize(self.len);
        let buffer = take(source.buffer_len(self.offset, len))?;
        Ok(ReadRequest { file: source, offset: self.offset, len, buffer, token })
    }

    /// The stored bytes of a sample in the bytes of its run; none where the run does not hold it.
    pub(crate) fn stored<'a>(&self, filled: &'a Filled, location: &Location) -> &'a [u8] {
        let start = location.offset.saturating_sub(self.offset);
        let end = start.saturating_add(location.stored_len);
        filled.bytes().get(to_usize(start)..to_usize(end)).unwrap_or_default()
    }
}
