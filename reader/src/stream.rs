//! One sample in parts, for callers that cannot hold it in memory.
//!
//! The checksum covers the whole sample, so it is known only at its end. The last part is returned only if the checksum
//! of all parts is right: a caller that reads to the end has read what was written, and a caller that gets an error
//! must discard what came before it. LZ4 samples, at most 64 MiB, are read as a whole.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Encoding, Location, PayloadError};

use crate::ReadError;
use crate::engine::{BufferPool, Filled, OpenFile};
use crate::single::{PartOf, Single, read_part};

/// Bytes that are read at a time.
const PART_LEN: u64 = 1 << 20;

/// The payload of one sample, read front to back. Made by [`Reader::stream`](crate::Reader::stream).
///
/// An error of [`Read`] that concerns the sample holds a [`ReadError`]. After one, every read fails.
pub struct SampleStream<'a>(Payload<'a>);

enum Payload<'a> {
    Held(Cursor<Vec<u8>>),
    Parts(Box<PartReader<'a>>),
}

struct PartReader<'a> {
    dataset: &'a Collection,
    pool: &'a BufferPool,
    file: Arc<OpenFile>,
    ordinal: u64,
    location: Location,
    hasher: crc32fast::Hasher,
    /// Bytes of the sample that have been read.
    read_len: u64,
    part: Option<Filled>,
    /// Bytes of the part that have been returned.
    returned_len: usize,
    has_failed: bool,
}

impl<'a> SampleStream<'a> {
    pub(crate) fn open(single: &Single<'a>, ordinal: u64) -> Result<Self, ReadError> {
        let location = single.dataset.locate(ordinal)?;
        if location.encoding != Encoding::Raw || location.stored_len == 0 {
            return Ok(Self(Payload::Held(Cursor::new(single.sample(ordinal)?.payload))));
        }
        Ok(Self(Payload::Parts(Box::new(PartReader {
            dataset: single.dataset,
            pool: single.pool,
            file: single.open_files.unmapped(location.segment)?,
            ordinal,
            location,
            hasher: crc32fast::Hasher::new(),
            read_len: 0,
            part: None,
            returned_len: 0,
            has_failed: false,
        }))))
    }
}

impl Read for SampleStream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Payload::Held(payload) => payload.read(out),
            Payload::Parts(parts) => parts.read(out),
        }
    }
}

impl PartReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.has_failed {
            return Err(io::Error::other("the sample cannot be read further after an error"));
        }
        if out.is_empty() {
            return Ok(0);
        }
        if self.rest().is_empty() && self.read_len < self.location.stored_len {
            self.advance().map_err(|error| {
                self.has_failed = true;
                self.give_back();
                io::Error::other(error)
            })?;
        }
        let len = self.rest().len().min(out.len());
        let (head, _) = out.split_at_mut(len);
        head.copy_from_slice(&self.rest()[..len]);
        self.returned_len += len;
        Ok(len)
    }

    fn rest(&self) -> &[u8] {
        let part = self.part.as_ref().map_or(&[][..], Filled::bytes);
        &part[self.returned_len..]
    }

    /// Reads the next part; after the last one the checksum must be right.
    fn advance(&mut self) -> Result<(), ReadError> {
        self.give_back();
        let offset = self.location.offset.saturating_add(self.read_len);
        let len = to_usize((self.location.stored_len - self.read_len).min(PART_LEN));
        let Self { dataset, pool, file, ordinal, .. } = self;
        let filled = read_part(&PartOf { dataset, pool, file, ordinal: *ordinal }, offset, len)?;
        self.hasher.update(filled.bytes());
        self.read_len += len as u64;
        self.part = Some(filled);
        if self.read_len == self.location.stored_len { self.check() } else { Ok(()) }
    }

    fn check(&self) -> Result<(), ReadError> {
        let offset = self.location.offset;
        let expected = self.location.crc;
        let found = self.hasher.clone().finalize();
        if found == expected {
            return Ok(());
        }
        let wrong = PayloadError::Crc { offset, end: offset.saturating_add(self.read_len), found, expected };
        Err(ReadError::damaged(self.dataset, self.ordinal, &self.location, &wrong))
    }

    fn give_back(&mut self) {
        self.returned_len = 0;
        if let Some(part) = self.part.take() {
            self.pool.give(part.into_buffer());
        }
    }
}

impl Drop for PartReader<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl std::fmt::Debug for SampleStream<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SampleStream").finish_non_exhaustive()
    }
}
