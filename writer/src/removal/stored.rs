//! The stored bytes of a segment's samples, read from start to end in large pieces.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use grainstore_format::to_usize;

use crate::WriteError;
use crate::output::Output;
use crate::storage::{Storage, StorageFile};

/// Bytes that are read at once.
const PIECE_LEN: u64 = 256 << 10;

pub(super) struct StoredBytes {
    file: Box<dyn StorageFile>,
    len: u64,
    /// The bytes of the file from `start` on.
    piece: Vec<u8>,
    start: u64,
}

impl StoredBytes {
    pub(super) fn open(storage: &dyn Storage, path: PathBuf) -> Result<Self, WriteError> {
        let file = storage.open(&path).map_err(WriteError::io("open", &path))?;
        let len = file.file_len().map_err(WriteError::io("look at", &path))?;
        Ok(Self { file, len, piece: Vec::new(), start: 0 })
    }

    /// Appends the bytes of a sample to `output`; returns their CRC-32, or why they cannot be read.
    pub(super) fn copy(
        &mut self,
        offset: u64,
        len: u64,
        output: &mut Output,
    ) -> Result<Result<u32, io::Error>, WriteError> {
        let mut hasher = crc32fast::Hasher::new();
        let mut range = offset..offset + len;
        while !range.is_empty() {
            let bytes = match self.take(range.clone()) {
                Ok(bytes) => bytes,
                Err(error) => return Ok(Err(error)),
            };
            hasher.update(bytes);
            output.write(bytes)?;
            range.start += bytes.len() as u64;
        }
        Ok(Ok(hasher.finalize()))
    }

    /// Bytes from the start of the range on, at least one.
    fn take(&mut self, range: Range<u64>) -> io::Result<&[u8]> {
        let held = self.start..self.start + self.piece.len() as u64;
        if !held.contains(&range.start) {
            let end = self.len.min(range.start + PIECE_LEN);
            // What follows may be damaged, and belong to a sample that goes.
            self.fill(range.start..end).or_else(|_| self.fill(range.start..range.end.min(range.start + PIECE_LEN)))?;
        }
        let from = to_usize(range.start - self.start);
        let end = self.piece.len().min(to_usize(range.end - self.start));
        self.piece.get(from..end).filter(|bytes| !bytes.is_empty()).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn fill(&mut self, range: Range<u64>) -> io::Result<()> {
        self.start = range.start;
        self.piece.clear();
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(to_usize(range.end.saturating_sub(range.start)), 0);
        self.file.read_exact_at(&mut piece, range.start)?;
        self.piece = piece;
        Ok(())
    }
}
