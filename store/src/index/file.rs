//! A file that holds an index, read with `pread` or, if that is chosen, mapped. Every byte read is counted.
//!
//! The last 64 KiB are read and held when the file is opened: they normally hold footer, directory and the small
//! sections, so that opening takes one read. spec.md: FIL-1.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use grainstore_format::memory::zeroed;
use grainstore_format::{BLOCK_LEN, to_usize};
use grainstore_host::NotRegular;
#[cfg(target_os = "linux")]
use rustix::fs::{Advice, fadvise};

use super::mapping::FileMapping;
use crate::{IndexMemory, StoreError};

const TAIL_LEN: u64 = 64 << 10;
/// Header, five sections, directory and footer: a block each. spec.md: FIL-1.
const MIN_FILE_LEN: u64 = 7 * BLOCK_LEN;

/// Opens a regular file: its handle and its length in bytes.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64), StoreError> {
    grainstore_host::open_regular(path).map_err(|error| {
        if NotRegular::caused(&error) {
            StoreError::mismatch(path, error.to_string())
        } else {
            StoreError::io(path, error)
        }
    })
}

/// An open file with an index in it.
#[derive(Debug)]
pub(crate) struct IndexFile {
    path: PathBuf,
    file: File,
    len: u64,
    memory: IndexMemory,
    tail: Vec<u8>,
    bytes_read: AtomicU64,
}

impl IndexFile {
    pub(crate) fn open(path: &Path, memory: IndexMemory) -> Result<Self, StoreError> {
        let (file, len) = open_regular(path)?;
        if len < MIN_FILE_LEN || !len.is_multiple_of(BLOCK_LEN) {
            let what = format!(
                "{len} bytes are not a whole file: expected a multiple of {BLOCK_LEN}, at least {MIN_FILE_LEN}"
            );
            return Err(StoreError::damaged(path, "file", what));
        }
        let bytes_read = AtomicU64::new(0);
        let mut opened = Self { path: path.to_owned(), file, len, memory, tail: Vec::new(), bytes_read };
        opened.tail = opened.read(len - len.min(TAIL_LEN)..len)?;
        opened.expect_short_reads();
        Ok(opened)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file's length in bytes when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether whole sections are to be mapped.
    pub(crate) fn is_mapped(&self) -> bool {
        self.memory == IndexMemory::Mapped
    }

    /// Bytes read from the disk so far, including bytes of maps.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// The bytes of `range`. Memory is allocated only if the range is inside the file.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        if range.start > range.end || range.end > self.len {
            let what = format!("{}..{} is not inside the file's {} bytes", range.start, range.end, self.len);
            return Err(StoreError::damaged(&self.path, "index", what));
        }
        let mut bytes = zeroed(range.end - range.start).map_err(|error| StoreError::no_memory(&self.path, error))?;
        self.read_into(range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Advises the system that reads are short and random: otherwise it reads several times more than requested.
    pub(crate) fn expect_short_reads(&self) {
        #[cfg(target_os = "linux")]
        let _ = fadvise(&self.file, 0, None, Advice::Random);
    }

    /// Advises the system that reads are sequential.
    pub(crate) fn expect_long_reads(&self) {
        #[cfg(target_os = "linux")]
        let _ = fadvise(&self.file, 0, None, Advice::Normal);
    }

    /// A map of `range`, which must be inside the file now. Its bytes have not been checked.
    pub(crate) fn map(&self, range: Range<u64>) -> Result<FileMapping, StoreError> {
        let wrong = |error| StoreError::io(&self.path, error);
        // A file truncated since it was opened would map, and end the process at the first access.
        let len = self.file.metadata().map_err(wrong)?.len();
        if len != self.len {
            let what = format!("it has {len} bytes, it had {} when it was opened", self.len);
            return Err(StoreError::damaged(&self.path, "file", what));
        }
        self.bytes_read.fetch_add(range.end.saturating_sub(range.start), Ordering::Relaxed);
        FileMapping::of_file(&self.file, range).map_err(wrong)
    }

    /// Fills `bytes` from `offset` on.
    pub(crate) fn read_into(&self, offset: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        let tail_offset = self.len - self.tail.len() as u64;
        let held = offset.checked_sub(tail_offset).and_then(|from| self.tail.get(to_usize(from)..)?.get(..bytes.len()));
        if let Some(held) = held {
            bytes.copy_from_slice(held);
            return Ok(());
        }
        self.bytes_read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.read_exact_at(bytes, offset).map_err(|error| StoreError::io(&self.path, error))
    }
}
