//! Reads one sample in the caller's thread: no engine, no other thread, and no lock on the common path.
//!
//! Raw bytes of a buffered or mapped file are read straight into the payload, which is checked there. So the returned
//! bytes are those that were checked, even if somebody writes to the file. Everything else passes through a buffer:
//! blocks of a direct file, and LZ4, which is decoded from the buffer (or from the map, if there is one).

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Encoding, Location, PayloadError, check_and_decode, check_stored, copy_with_crc};

use crate::engine::{
    self, BufferPool, Filled, HUGE_LEN, IoMode, OpenFile, ReadRequest, append_now, prefetch, read_now,
};
use crate::open_files::OpenFiles;
use crate::{ReadError, Sample};

/// Buffers of this many bytes or more are on huge pages.
const HUGE_FROM: usize = 32 << 10;

/// What reading one sample needs.
pub(crate) struct Single<'a> {
    pub(crate) dataset: &'a Collection,
    pub(crate) open_files: &'a OpenFiles,
    pub(crate) pool: &'a BufferPool,
}

impl<'a> Single<'a> {
    /// The sample of an ordinal.
    pub(crate) fn sample(&self, ordinal: u64) -> Result<Sample, ReadError> {
        let mut payload = Vec::new();
        self.payload(ordinal, &mut payload)?;
        Sample::new(self.dataset, ordinal, payload)
    }

    /// Reads the payload of an ordinal into `payload`, whose bytes are replaced. After an error they are arbitrary.
    pub(crate) fn payload(&self, ordinal: u64, payload: &mut Vec<u8>) -> Result<(), ReadError> {
        let location = self.dataset.locate(ordinal)?;
        let file = self.open_files.borrowed(location.segment)?;
        let file = file.as_ref();
        make_room(&location, payload)?;
        let mut read = match (location.encoding, file.mode()) {
            (Encoding::Raw, IoMode::Buffered | IoMode::Mapped) => read_straight(file, &location, payload),
            _ => self.read_by_buffer(file, &location, payload)?,
        };
        if matches!(read, Ok(Err(_)))
            && let Some(stored) = self.open_files.reread(&location)
        {
            payload.clear();
            read = stored.map(|stored| check_and_decode(&location, &stored, payload));
        }
        match read {
            Ok(Ok(())) => Ok(()),
            Ok(Err(wrong)) => Err(ReadError::damaged(self.dataset, ordinal, &location, &wrong)),
            Err(error) => Err(ReadError::unreadable(self.dataset, ordinal, error)),
        }
    }

    /// The payload of an ordinal in its mapped file; `None` if it is compressed or not mapped, or if its entry is not in
    /// memory or its file not open yet.
    pub(crate) fn mapped(&self, ordinal: u64) -> Option<MappedPayload<'a>> {
        let location = self.dataset.cached_location(ordinal).filter(|location| location.encoding == Encoding::Raw)?;
        let file = self.open_files.if_open(location.segment)?;
        let mapped = MappedPayload { file, location };
        mapped.bytes()?;
        Some(mapped)
    }

    fn read_by_buffer(
        &self,
        file: &Arc<OpenFile>,
        location: &Location,
        payload: &mut Vec<u8>,
    ) -> Result<ReadAndChecked, ReadError> {
        let len = to_usize(location.stored_len);
        let buffer_len = match file.buffer_len(location.offset, len) {
            // A long read into one huge page is one piece for the device.
            len if len >= HUGE_FROM => len.max(HUGE_LEN),
            len => len,
        };
        let no_memory = ReadError::NoMemory { len: buffer_len as u64 };
        let buffer = self.pool.try_take(buffer_len).ok_or(no_memory)?;
        let request = ReadRequest { file: Arc::clone(file), offset: location.offset, len, buffer, token: 0 };
        Ok(match read_now(request).result {
            Ok(filled) => {
                let checked = check_and_decode(location, filled.bytes(), payload);
                self.pool.give(filled.into_buffer());
                Ok(checked)
            }
            Err(failed) => {
                self.pool.give(failed.buffer);
                Err(failed.error)
            }
        })
    }
}

/// A payload in a mapped file, which nobody has checked yet. [`Reader::mapped`](crate::Reader::mapped) makes it.
#[derive(Debug)]
pub struct MappedPayload<'a> {
    file: Cow<'a, Arc<OpenFile>>,
    location: Location,
}

impl MappedPayload<'_> {
    /// Its length in bytes.
    #[must_use]
    pub fn payload_len(&self) -> u64 {
        self.location.stored_len
    }

    /// Lets the processor fetch its first bytes while something else is done.
    pub fn prefetch(&self) {
        prefetch(self.bytes().unwrap_or_default());
    }

    /// Copies it to `out`, which is as long, and checks the copy; `None` if it is damaged or cannot be read:
    /// [`Reader::get`](crate::Reader::get) tells why.
    pub fn copy_to<'o>(&self, out: &'o mut [MaybeUninit<u8>]) -> Option<&'o mut [u8]> {
        let copied = |bytes: &[u8]| (bytes.len() == out.len()).then(move || copy_with_crc(bytes, out));
        let (copy, crc) = self.file.read_mapped(&self.range(), copied)??;
        (crc == self.location.crc).then_some(copy)
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.file.mapped(self.range())
    }

    fn range(&self) -> Range<u64> {
        self.location.offset..self.location.offset.saturating_add(self.location.stored_len)
    }
}

/// Reads a part of a sample, into a buffer of the pool: `len` bytes of its file. They are used before all of the sample is
/// checked, so the file must not be mapped: see [`OpenFiles::unmapped`].
pub(crate) fn read_part(sample: &PartOf<'_>, offset: u64, len: usize) -> Result<Filled, ReadError> {
    let PartOf { dataset, pool, file, ordinal } = *sample;
    let buffer_len = file.buffer_len(offset, len);
    let buffer = pool.try_take(buffer_len).ok_or(ReadError::NoMemory { len: buffer_len as u64 })?;
    let request = ReadRequest { file: Arc::clone(file), offset, len, buffer, token: 0 };
    read_now(request).result.map_err(|failed| {
        pool.give(failed.buffer);
        ReadError::unreadable(dataset, ordinal, failed.error)
    })
}

/// The sample that a part is of.
pub(crate) struct PartOf<'a> {
    pub(crate) dataset: &'a Collection,
    pub(crate) pool: &'a BufferPool,
    pub(crate) file: &'a Arc<OpenFile>,
    pub(crate) ordinal: u64,
}

/// The outer error: the bytes could not be read. The inner error: they are damaged.
type ReadAndChecked = Result<Result<(), PayloadError>, engine::FileError>;

fn read_straight(file: &OpenFile, location: &Location, payload: &mut Vec<u8>) -> ReadAndChecked {
    let range = location.offset..location.offset.saturating_add(location.stored_len);
    if let Some(checked) = file.read_mapped(&range, |mapped| check_and_decode(location, mapped, payload)) {
        return Ok(checked);
    }
    append_now(file, range, payload)?;
    Ok(check_stored(location, payload))
}

/// Reserves memory for the raw payload. Its length is bounded by the stored one, and that by the file's.
fn make_room(location: &Location, payload: &mut Vec<u8>) -> Result<(), ReadError> {
    payload.clear();
    let len = location.raw_len();
    payload.try_reserve_exact(to_usize(len)).map_err(|_| ReadError::NoMemory { len })
}
