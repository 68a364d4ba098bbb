//! One section of an index: read piece by piece, or whole. No byte leaves unchecked. spec.md: DIR-6.
//!
//! A single question reads only the pieces of 64 KiB that cover the answer. Who asks often is served from memory:
//! after `max(8, pieces / 8)` pieces the whole section is loaded, so that reading on costs at most an eighth more.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use grainstore_format::{ChecksumList, FormatError, PIECE_LEN, SectionRecord, to_usize};

use crate::StoreError;
use crate::file::IndexFile;
use crate::threads::share_out;

/// Bytes that one thread reads and checks at a time while a section is loaded.
const SHARE_LEN: u64 = 16 * PIECE_LEN;
/// Sections up to this many bytes are loaded by the calling thread: starting others takes longer.
const ALONE_LEN: u64 = 8 * SHARE_LEN;

#[derive(Debug)]
pub(crate) struct Section {
    record: SectionRecord,
    checksums: OnceLock<ChecksumList>,
    whole: OnceLock<Vec<u8>>,
    loading: Mutex<()>,
    pieces_read: AtomicU64,
}

impl Section {
    pub(crate) fn new(record: SectionRecord) -> Self {
        let (checksums, whole) = (OnceLock::new(), OnceLock::new());
        Self { record, checksums, whole, loading: Mutex::new(()), pieces_read: AtomicU64::new(0) }
    }

    pub(crate) fn record(&self) -> &SectionRecord {
        &self.record
    }

    /// The bytes of `range` of the section, from memory where it is loaded.
    pub(crate) fn read(&self, file: &IndexFile, range: Range<u64>) -> Result<Cow<'_, [u8]>, StoreError> {
        let all = match self.whole.get() {
            Some(whole) => whole,
            None if self.is_worth_loading(&range) => self.whole(file)?,
            None => return self.peek(file, range).map(Cow::Owned),
        };
        all.get(to_usize(range.start)..to_usize(range.end)).map(Cow::Borrowed).ok_or_else(|| self.outside(file, &range))
    }

    /// The whole section; loaded at the first call.
    pub(crate) fn whole(&self, file: &IndexFile) -> Result<&[u8], StoreError> {
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        // One thread loads, the others wait: a section may take gigabytes.
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let bytes = self.load(file)?;
        Ok(self.whole.get_or_init(|| bytes))
    }

    /// The bytes of `range`, read from the disk and not kept.
    pub(crate) fn peek(&self, file: &IndexFile, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        if range.start > range.end || range.end > self.record.len {
            return Err(self.outside(file, &range));
        }
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let from = range.start / PIECE_LEN * PIECE_LEN;
        let to = (range.end.div_ceil(PIECE_LEN) * PIECE_LEN).min(self.record.len);
        let checksums = self.checksums(file)?;
        let mut bytes = file.read(self.record.offset + from..self.record.offset + to)?;
        self.check(file, checksums, from, &bytes)?;
        bytes.truncate(to_usize(range.end - from));
        bytes.drain(..to_usize(range.start - from));
        Ok(bytes)
    }

    /// The section's list of checksums, checked; read at the first call.
    pub(crate) fn checksums(&self, file: &IndexFile) -> Result<&ChecksumList, StoreError> {
        if let Some(list) = self.checksums.get() {
            return Ok(list);
        }
        let start = self.record.checksums_offset();
        let bytes = file.read(start..start + 4 * self.record.piece_count())?;
        let list = ChecksumList::decode(bytes, self.record.checksums_crc).map_err(|error| self.wrong(file, error))?;
        Ok(self.checksums.get_or_init(|| list))
    }

    fn is_worth_loading(&self, range: &Range<u64>) -> bool {
        let pieces = range.end.div_ceil(PIECE_LEN).saturating_sub(range.start / PIECE_LEN);
        let read = self.pieces_read.fetch_add(pieces, Ordering::Relaxed).saturating_add(pieces);
        let all = self.record.piece_count();
        all == 1 || read > (all / 8).max(8)
    }

    fn load(&self, file: &IndexFile) -> Result<Vec<u8>, StoreError> {
        let checksums = self.checksums(file)?;
        let len = self.record.len;
        if self.record.offset.saturating_add(len) > file.len() {
            return Err(self.outside(file, &(0..len)));
        }
        let mut bytes = vec![0; to_usize(len)];
        let fill = |(share, bytes): (usize, &mut [u8])| {
            let from = share as u64 * SHARE_LEN;
            file.read_into(self.record.offset + from, bytes)?;
            self.check(file, checksums, from, bytes)
        };
        let share_len = to_usize(SHARE_LEN);
        if len <= ALONE_LEN {
            bytes.chunks_mut(share_len).enumerate().try_for_each(fill)?;
        } else {
            share_out(bytes.chunks_mut(share_len).enumerate(), fill)?;
        }
        Ok(bytes)
    }

    /// Checks whole pieces that start at `from`, a multiple of the piece's length.
    fn check(&self, file: &IndexFile, list: &ChecksumList, from: u64, bytes: &[u8]) -> Result<(), StoreError> {
        (from / PIECE_LEN..)
            .zip(bytes.chunks(to_usize(PIECE_LEN)))
            .try_for_each(|(piece, bytes)| list.check_piece(piece, bytes))
            .map_err(|error| self.wrong(file, error))
    }

    fn outside(&self, file: &IndexFile, range: &Range<u64>) -> StoreError {
        let detail = format!("bytes {}..{} are not inside its {}", range.start, range.end, self.record.len);
        StoreError::damaged(file.path(), self.record.kind.name(), detail)
    }

    /// The same error, with the section's name in it.
    fn wrong(&self, file: &IndexFile, error: FormatError) -> StoreError {
        let detail = match error {
            FormatError::Damaged { detail, .. } => detail,
            other => other.to_string(),
        };
        let detail = format!("section {}: {detail}", self.record.label());
        StoreError::damaged(file.path(), "index", detail)
    }
}
