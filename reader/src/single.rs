//! Reads one sample in the caller's thread: no engine, no other thread, and no lock on the common path.
//!
//! Raw bytes of a buffered or mapped file are read straight into the payload, which is checked there. So the returned
//! bytes are those that were checked, even if somebody writes to the file. Everything else passes through a buffer:
//! blocks of a direct file, and LZ4, which is decoded from the buffer (or from the map, if there is one).

use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Encoding, Location, PayloadError, check_and_decode, check_stored};

use crate::engine::{
    self, BufferPool, Filled, HUGE_LEN, IoMode, OpenFile, ReadRequest, append_unmapped_now, prefetch, read_now,
    read_unmapped_now,
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

impl Single<'_> {
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

    /// A copy that `copy` makes of a mapped payload of at most `len_max` bytes; the copy is then checked. `None` if the
    /// sample is longer, not raw or not mapped, if its entry is not in memory yet, or if the copy is damaged.
    pub(crate) fn copied<T: AsRef<[u8]>>(
        &self,
        ordinal: u64,
        len_max: u64,
        copy: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let located = self.dataset.cached_location(ordinal).filter(|location| location.stored_len <= len_max);
        let location = located?;
        let file = self.open_files.if_open(location.segment)?;
        let range = location.offset..location.offset.saturating_add(location.stored_len);
        let mapped = file.mapped(range)?;
        // `copy` may do something else first.
        prefetch(mapped);
        let copied = copy(mapped);
        check_stored(&location, copied.as_ref()).is_ok().then_some(copied)
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

/// Reads a part of a sample, into a buffer of the pool: `len` bytes of its file. Its bytes are used before all of them
/// are checked, so they are never lent by a map.
pub(crate) fn read_part(sample: &PartOf<'_>, offset: u64, len: usize) -> Result<Filled, ReadError> {
    let PartOf { dataset, pool, file, ordinal } = *sample;
    let buffer_len = file.unmapped_buffer_len(offset, len);
    let buffer = pool.try_take(buffer_len).ok_or(ReadError::NoMemory { len: buffer_len as u64 })?;
    let request = ReadRequest { file: Arc::clone(file), offset, len, buffer, token: 0 };
    read_unmapped_now(request).result.map_err(|failed| {
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
    if let Some(mapped) = file.mapped_soon(range.clone()) {
        return Ok(check_and_decode(location, mapped, payload));
    }
    append_unmapped_now(file, range, payload)?;
    Ok(check_stored(location, payload))
}

/// Reserves memory for the raw payload. Its length is bounded by the stored one, and that by the file's.
fn make_room(location: &Location, payload: &mut Vec<u8>) -> Result<(), ReadError> {
    payload.clear();
    let len = location.raw_len();
    payload.try_reserve_exact(to_usize(len)).map_err(|_| ReadError::NoMemory { len })
}
