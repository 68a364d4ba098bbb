//! A byte range of a segment's file: what one read fetches.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Location};

use crate::ReadError;
use crate::engine::{BLOCK_LEN, Buffer, Filled, OpenFile, ReadRequest};

/// The longest gap between samples that is read with them: about the length that a device reads anyway.
pub(crate) const GAP_LEN_MAX: u64 = 4 << 10;

/// Bytes of a segment's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) segment: usize,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl ByteRange {
    /// From the start of the first sample of `ordinals` to the end of the last, with the gaps between them. The range
    /// of ordinals is not empty, and its samples are in one segment.
    pub(crate) fn of_samples(dataset: &Collection, ordinals: &Range<u64>) -> Result<Self, ReadError> {
        let first = dataset.locate(ordinals.start)?;
        let mut range = Self::of_sample(&first);
        if ordinals.end - ordinals.start > 1 {
            let last = Self::of_sample(&dataset.locate(ordinals.end - 1)?);
            range.len = last.end().saturating_sub(range.offset);
        }
        Ok(range)
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

    /// This range and the one that follows it in the file, if the gap between them is small.
    pub(crate) fn joined(&self, next: &Self) -> Option<Self> {
        let gap = next.offset.checked_sub(self.end())?;
        let len = next.end().checked_sub(self.offset)?;
        (self.segment == next.segment && gap <= GAP_LEN_MAX).then_some(Self { len, ..*self })
    }

    /// Whether it contains all bytes of another range.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.segment == other.segment && self.offset <= other.offset && other.end() <= self.end()
    }

    /// Whether it contains the sample's bytes.
    pub(crate) fn contains(&self, location: &Location) -> bool {
        self.covers(&Self::of_sample(location))
    }

    /// Bytes of the whole blocks that contain it: what a direct read needs.
    pub(crate) fn blocks_len(&self) -> u64 {
        const BLOCK: u64 = BLOCK_LEN as u64;
        if self.len == 0 {
            return 0;
        }
        // The index of a damaged dataset may give an end near 2^64. No file has these bytes, so the read fails.
        let end = self.end().checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
        end - self.offset / BLOCK * BLOCK
    }

    /// The read that fetches it, into the buffer that `take` returns for a length.
    pub(crate) fn request(
        &self,
        file: Arc<OpenFile>,
        token: u64,
        take: impl FnOnce(usize) -> Result<Buffer, ReadError>,
    ) -> Result<ReadRequest, ReadError> {
        let len = to_usize(self.len);
        let buffer = take(file.buffer_len(self.offset, len))?;
        Ok(ReadRequest { file, offset: self.offset, len, buffer, token })
    }

    /// The stored bytes of a sample in the bytes of this range; none where the range does not contain it, as a damaged
    /// index may have it. Then the sample's checksum fails.
    pub(crate) fn stored<'a>(&self, filled: &'a Filled, location: &Location) -> &'a [u8] {
        let start = location.offset.saturating_sub(self.offset);
        let end = start.saturating_add(location.stored_len);
        filled.bytes().get(to_usize(start)..to_usize(end)).unwrap_or_default()
    }
}
