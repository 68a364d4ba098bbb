//! One sample as a file, for decoders that read parts of a long one: a video, a recording, an archive.
//!
//! The checksum covers the whole sample, so a part of it cannot be checked by itself. What is short or compressed is
//! read and checked as a whole when it is opened. Of a longer sample, the bytes are added to a checksum where they come
//! in order: once all have come, each for the first time in ascending order, the last of them are returned only if the
//! checksum is right. Parts that are read elsewhere do not disturb this, and are not checked.
//!
//! A field of a sample with several is checked in this way, too, if the rest of the sample is no longer than the field:
//! the rest is read for it when the field has come to its end.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use crc32fast::Hasher;
use grainstore_format::to_usize;
use grainstore_store::{Collection, Encoding, Location, PayloadError};

use crate::engine::{BufferPool, Filled, OpenFile};
use crate::single::{PartOf, Single, read_part};
use crate::{ReadError, fields};

/// Samples of at most this many bytes are read as a whole.
const WHOLE_LEN_MAX: u64 = 1 << 20;
/// The most bytes that are read at a time.
const PART_LEN_MAX: u64 = 1 << 20;
/// Fewer are not read at a time, as a decoder asks for a few bytes after the other.
const PART_LEN_MIN: u64 = 128 << 10;

/// A sample, or one of its fields, as a file. Made by [`Reader::open_sample`](crate::Reader::open_sample).
///
/// Samples of at most 1 MiB and compressed ones are checked when they are opened; of a longer one, the last bytes are
/// returned only if all bytes have come in order (others may have been read between them) and the checksum is right.
/// Bytes that are read out of order are not checked.
///
/// It needs the reader no longer. An error of [`Read`] that concerns the sample holds a [`ReadError`].
pub struct SampleFile {
    bytes: SampleBytes,
    position: u64,
}

enum SampleBytes {
    /// All of the payload, and which part of it is the file.
    Held {
        payload: Vec<u8>,
        range: Range<u64>,
    },
    Parts(Box<Parts>),
}

struct Parts {
    dataset: Collection,
    pool: Arc<BufferPool>,
    file: Arc<OpenFile>,
    ordinal: u64,
    location: Location,
    /// The file's bytes in the payload, which is stored as it is.
    range: Range<u64>,
    /// What was read last, and from where in the payload.
    part: Option<(u64, Filled)>,
    check: Check,
}

/// How far the checksum has come.
enum Check {
    /// All bytes of the file before this position of the payload are in it.
    Until(u64, Hasher),
    Right,
    Wrong(PayloadError),
    /// The rest of the sample is longer than the field: it is not read for the checksum.
    Omitted,
}

impl SampleFile {
    pub(crate) fn open(
        single: &Single<'_>,
        pool: &Arc<BufferPool>,
        ordinal: u64,
        field: Option<&str>,
    ) -> Result<Option<Self>, ReadError> {
        let dataset = single.dataset;
        let location = dataset.locate(ordinal)?;
        let payload_len = location.raw_len();
        let range = match field {
            None => 0..payload_len,
            Some(name) => {
                let number = fields::number_of(dataset.schema(), name)?;
                let Some(range) = dataset.fields(ordinal, payload_len)?.into_iter().nth(number).flatten() else {
                    return Ok(None);
                };
                range
            }
        };
        let bytes = if location.encoding != Encoding::Raw || payload_len <= WHOLE_LEN_MAX {
            SampleBytes::Held { payload: single.sample(ordinal)?.payload, range }
        } else {
            let rest_len = payload_len - (range.end - range.start);
            let is_checked = rest_len <= range.end - range.start;
            let check = if is_checked { Check::Until(range.start, Hasher::new()) } else { Check::Omitted };
            SampleBytes::Parts(Box::new(Parts {
                dataset: dataset.clone(),
                pool: Arc::clone(pool),
                file: single.open_files.unmapped(location.segment)?,
                ordinal,
                location,
                range,
                part: None,
                check,
            }))
        };
        Ok(Some(Self { bytes, position: 0 }))
    }

    /// Its length in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        let range = self.bytes.range();
        range.end - range.start
    }

    /// Where the next read begins; it may be past the end.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Sets where the next read begins. Nothing is read by this; past the end there are no bytes.
    pub fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Fills `out` from the position on, and returns the number of bytes, which is less only at the end.
    ///
    /// # Errors
    /// If the bytes cannot be read, and the position stays where it was; or if the checksum is found to be wrong: every
    /// later read then fails as well, and the bytes that came before must not be used.
    pub fn fill(&mut self, out: &mut [u8]) -> Result<usize, ReadError> {
        let start = self.position;
        let mut filled_len = 0;
        while filled_len < out.len() {
            match self.read_some(&mut out[filled_len..]) {
                Ok(0) => break,
                Ok(len) => filled_len += len,
                Err(error) => {
                    // Nobody gets the bytes that came before it.
                    self.position = start;
                    return Err(error);
                }
            }
        }
        Ok(filled_len)
    }

    fn read_some(&mut self, out: &mut [u8]) -> Result<usize, ReadError> {
        let range = self.bytes.range();
        let start = range.start.saturating_add(self.position).min(range.end);
        let found = match &mut self.bytes {
            SampleBytes::Held { payload, .. } => payload.get(to_usize(start)..to_usize(range.end)).unwrap_or_default(),
            SampleBytes::Parts(parts) => parts.at(start, out.len() as u64)?,
        };
        let len = found.len().min(out.len());
        let (head, _) = out.split_at_mut(len);
        head.copy_from_slice(&found[..len]);
        self.position += len as u64;
        Ok(len)
    }
}

impl SampleBytes {
    fn range(&self) -> Range<u64> {
        match self {
            Self::Held { range, .. } => range.clone(),
            Self::Parts(parts) => parts.range.clone(),
        }
    }
}

impl Parts {
    /// Bytes of the file from `start` on, a position of the payload; none at its end.
    fn at(&mut self, start: u64, wanted_len: u64) -> Result<&[u8], ReadError> {
        if let Check::Wrong(wrong) = &self.check {
            return Err(ReadError::damaged(&self.dataset, self.ordinal, &self.location, wrong));
        }
        let is_held = self.part.as_ref().is_some_and(|(from, part)| contains(*from, part, start));
        if !is_held && start < self.range.end {
            self.give_back();
            let len = wanted_len.clamp(PART_LEN_MIN, PART_LEN_MAX).min(self.range.end - start);
            let part = self.read(start..start + len)?;
            // After an error it is given back, not kept: the next read must not find it.
            let checked = self.add(start, &part);
            self.part = Some((start, part));
            if let Err(error) = checked {
                self.give_back();
                return Err(error);
            }
        }
        let held = self.part.as_ref().filter(|(from, part)| contains(*from, part, start));
        Ok(held.map_or(&[], |(from, part)| &part.bytes()[to_usize(start - from)..]))
    }

    fn read(&self, range: Range<u64>) -> Result<Filled, ReadError> {
        let offset = self.location.offset.saturating_add(range.start);
        let len = to_usize(range.end - range.start);
        let Self { dataset, pool, file, ordinal, .. } = self;
        read_part(&PartOf { dataset, pool, file, ordinal: *ordinal }, offset, len)
    }

    /// Adds a part to the checksum, as far as it continues what is in it.
    fn add(&mut self, start: u64, part: &Filled) -> Result<(), ReadError> {
        let Check::Until(until, hasher) = &mut self.check else { return Ok(()) };
        let known_len = until.checked_sub(start).map(to_usize);
        let Some(new) = known_len.and_then(|known_len| part.bytes().get(known_len..)) else { return Ok(()) };
        hasher.update(new);
        *until += new.len() as u64;
        if *until < self.range.end {
            return Ok(());
        }
        let of_file = hasher.clone();
        let found = self.with_rest(of_file)?;
        if found == self.location.crc {
            self.check = Check::Right;
            return Ok(());
        }
        let Location { offset, crc: expected, .. } = self.location;
        let end = offset.saturating_add(self.location.stored_len);
        let wrong = PayloadError::Crc { offset, end, found, expected };
        let error = ReadError::damaged(&self.dataset, self.ordinal, &self.location, &wrong);
        self.check = Check::Wrong(wrong);
        Err(error)
    }

    /// The checksum of the payload, by that of the file and the bytes before and after it.
    fn with_rest(&self, of_file: Hasher) -> Result<u32, ReadError> {
        let mut hasher = Hasher::new();
        self.hash(0..self.range.start, &mut hasher)?;
        hasher.combine(&of_file);
        self.hash(self.range.end..self.location.stored_len, &mut hasher)?;
        Ok(hasher.finalize())
    }

    fn hash(&self, range: Range<u64>, hasher: &mut Hasher) -> Result<(), ReadError> {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start.saturating_add(PART_LEN_MAX));
            let part = self.read(start..end)?;
            hasher.update(part.bytes());
            self.pool.give(part.into_buffer());
            start = end;
        }
        Ok(())
    }

    fn give_back(&mut self) {
        if let Some((_, part)) = self.part.take() {
            self.pool.give(part.into_buffer());
        }
    }
}

/// Whether the byte at `position` is in a part that was read at `from`.
fn contains(from: u64, part: &Filled, position: u64) -> bool {
    (from..from.saturating_add(part.bytes().len() as u64)).contains(&position)
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Read for SampleFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.read_some(out).map_err(io::Error::other)
    }
}

impl Seek for SampleFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.file_len().checked_add_signed(by),
        };
        self.position = position.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the position is before the start of the sample, or past 2^64")
        })?;
        Ok(self.position)
    }
}

impl std::fmt::Debug for SampleFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("SampleFile");
        shown.field("file_len", &self.file_len()).field("position", &self.position).finish_non_exhaustive()
    }
}
