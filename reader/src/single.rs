//! Reads one sample, in the caller's thread: no engine, no other thread, and no lock on the common way.
//!
//! Raw bytes of a buffered or mapped file land where they stay: in the payload, which is checked there. So what was
//! checked is what is handed out, even where somebody writes to the file. All else passes through a buffer: blocks of a
//! direct file, and LZ4, which is decoded from it (from the map, where there is one).

use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Encoding, Location, PayloadError, check_and_decode, check_stored};

use crate::engine::{self, BufferPool, HUGE_LEN, IoMode, OpenFile, ReadRequest, append_now, prefetch, read_now};
use crate::open_files::OpenFiles;
use crate::{ReadError, Sample};

/// Buffers from this many bytes on lie on huge pages.
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

    /// Its payload, in place of what `payload` holds. On an error that is of no use.
    pub(crate) fn payload(&self, ordinal: u64, payload: &mut Vec<u8>) -> Result<(), ReadError> {
        let location = self.dataset.locate(ordinal)?;
        let file = self.open_files.borrowed(location.segment)?;
        make_room(&location, payload)?;
        let read = match (location.encoding, file.mode()) {
            (Encoding::Raw, IoMode::Buffered | IoMode::Mapped) => read_straight(&file, &location, payload),
            _ => self.read_by_buffer(&file, &location, payload)?,
        };
        match read {
            Ok(Ok(())) => Ok(()),
            Ok(Err(wrong)) => Err(ReadError::damaged(self.dataset, ordinal, &location, &wrong)),
            Err(error) => Err(ReadError::unreadable(self.dataset, ordinal, error)),
        }
    }

    /// A copy that `copy` makes of the payload where it lies in a map, checked once it is made: a sample of at most
    /// `len_max` bytes. `None` where it is longer, not raw or not mapped, or where somebody would have to wait to know.
    pub(crate) fn copied<T: AsRef<[u8]>>(
        &self,
        ordinal: u64,
        len_max: u64,
        copy: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, ReadError> {
        let located = self.dataset.cached_location(ordinal).filter(|location| location.stored_len <= len_max);
        let Some(location) = located else { return Ok(None) };
        let Some(file) = self.open_files.if_open(location.segment) else { return Ok(None) };
        let range = location.offset..location.offset.saturating_add(location.stored_len);
        let Some(mapped) = file.mapped(range) else { return Ok(None) };
        // Whoever copies may have something else to do first.
        prefetch(mapped);
        let copied = copy(mapped);
        match check_stored(&location, copied.as_ref()) {
            Ok(()) => Ok(Some(copied)),
            Err(wrong) => Err(ReadError::damaged(self.dataset, ordinal, &location, &wrong)),
        }
    }

    fn read_by_buffer(
        &self,
        file: &Arc<OpenFile>,
        location: &Location,
        payload: &mut Vec<u8>,
    ) -> Result<Read, ReadError> {
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

/// Whether the bytes arrived, and then whether they are right.
type Read = Result<Result<(), PayloadError>, engine::FileError>;

fn read_straight(file: &OpenFile, location: &Location, payload: &mut Vec<u8>) -> Read {
    let range = location.offset..location.offset.saturating_add(location.stored_len);
    append_now(file, range, payload)?;
    Ok(check_stored(location, payload))
}

/// Room for a raw payload. Its length is bounded by the stored one, and that by the file's.
fn make_room(location: &Location, payload: &mut Vec<u8>) -> Result<(), ReadError> {
    payload.clear();
    let len = location.raw_len();
    payload.try_reserve_exact(to_usize(len)).map_err(|_| ReadError::NoMemory { len })
}
