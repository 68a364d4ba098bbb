//! Reads one sample, in the caller's thread: no engine, no other thread, and no lock on the common way.
//!
//! Raw bytes of a buffered or mapped file land where they stay: in the payload, which is checked there. So what was
//! checked is what is handed out, even where somebody writes to the file. All else passes through a buffer: blocks of a
//! direct file, and LZ4, which is decoded from it (from the map, where there is one).

use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_store::{Collection, Encoding, Location, PayloadError, check_and_decode, check_stored};

use crate::engine::{self, BufferPool, HUGE_LEN, IoMode, ReadRequest, Source, append_now, read_now};
use crate::sources::Sources;
use crate::{ReadError, Sample};

/// Buffers from this many bytes on lie on huge pages.
const HUGE_FROM: usize = 32 << 10;

/// What reading one sample needs.
pub(crate) struct Single<'a> {
    pub(crate) dataset: &'a Collection,
    pub(crate) sources: &'a Sources,
    pub(crate) pool: &'a BufferPool,
}

impl Single<'_> {
    /// The sample of an ordinal.
    pub(crate) fn sample(&self, ordinal: u64) -> Result<Sample, ReadError> {
        let location = self.dataset.locate(ordinal)?;
        let source = self.sources.borrowed(location.segment)?;
        let mut payload = payload_for(&location)?;
        let read = match (location.encoding, source.mode()) {
            (Encoding::Raw, IoMode::Buffered | IoMode::Mapped) => read_straight(&source, &location, &mut payload),
            _ => self.read_by_buffer(&source, &location, &mut payload)?,
        };
        match read {
            Ok(Ok(())) => Sample::new(self.dataset, ordinal, payload),
            Ok(Err(wrong)) => Err(ReadError::damaged(self.dataset, ordinal, &location, &wrong)),
            Err(error) => Err(ReadError::unreadable(self.dataset, ordinal, error)),
        }
    }

    fn read_by_buffer(
        &self,
        source: &Arc<Source>,
        location: &Location,
        payload: &mut Vec<u8>,
    ) -> Result<Read, ReadError> {
        let len = to_usize(location.stored_len);
        let buffer_len = match source.buffer_len(location.offset, len) {
            // A long read into one huge page is one piece for the device.
            len if len >= HUGE_FROM => len.max(HUGE_LEN),
            len => len,
        };
        let no_memory = ReadError::NoMemory { len: buffer_len as u64 };
        let buffer = self.pool.try_take(buffer_len).ok_or(no_memory)?;
        let request = ReadRequest { source: Arc::clone(source), offset: location.offset, len, buffer, token: 0 };
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
type Read = Result<Result<(), PayloadError>, engine::ReadError>;

fn read_straight(source: &Source, location: &Location, payload: &mut Vec<u8>) -> Read {
    let range = location.offset..location.offset.saturating_add(location.stored_len);
    append_now(source, range, payload)?;
    Ok(check_stored(location, payload))
}

/// Room for a raw payload. Its length is bounded by the stored one, and that by the file's.
fn payload_for(location: &Location) -> Result<Vec<u8>, ReadError> {
    let mut payload = Vec::new();
    let len = location.raw_len();
    payload.try_reserve_exact(to_usize(len)).map_err(|_| ReadError::NoMemory { len })?;
    Ok(payload)
}
