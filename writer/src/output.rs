//! A file under construction: appended through a buffer, under a temporary name until it is complete.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::WriteError;
use crate::storage::{Storage, StorageFile};

const BUFFER_LEN: usize = 1 << 20;
/// Owned bytes from this length on are written from where they are: copying them would cost more than a slice of a
/// write.
const OWNED_LEN: usize = 2 << 10;
/// Slices of a write: fewer than the 1024 that Linux takes.
const OWNED_MAX: usize = 512;
static ZEROS: [u8; 65536] = [0; 65536];

/// An append-only file. Its final name exists only after [`Output::rename_into_place`].
pub(crate) struct Output {
    renamed: bool,
    storage: Arc<dyn Storage>,
    file: Box<dyn StorageFile>,
    final_path: PathBuf,
    path: PathBuf,
    /// Bytes to be written next, in this order: those of `owned`, those of `buffer`.
    owned: Vec<Vec<u8>>,
    buffer: Vec<u8>,
    waiting_len: usize,
    len: u64, // waiting bytes included
}

impl Output {
    /// Creates the file under `final_path` plus `.tmp`.
    pub(crate) fn create(storage: &Arc<dyn Storage>, final_path: PathBuf) -> Result<Self, WriteError> {
        let mut path = final_path.clone().into_os_string();
        path.push(".tmp");
        let path = PathBuf::from(path);
        let file = storage.create(&path).map_err(WriteError::io("create", &path))?;
        let storage = Arc::clone(storage);
        let (owned, buffer) = (Vec::new(), Vec::new());
        Ok(Self { renamed: false, storage, file, final_path, path, owned, buffer, waiting_len: 0, len: 0 })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if self.waiting_len + bytes.len() > BUFFER_LEN {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_LEN {
            self.file.append(bytes).map_err(WriteError::io("write", &self.path))?;
        } else {
            self.buffer.extend_from_slice(bytes);
            self.waiting_len += bytes.len();
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Writes bytes that the caller does not need any more.
    pub(crate) fn write_owned(&mut self, bytes: Vec<u8>) -> Result<(), WriteError> {
        if bytes.len() < OWNED_LEN {
            return self.write(&bytes);
        }
        if !self.buffer.is_empty() {
            self.owned.push(std::mem::take(&mut self.buffer));
        }
        self.waiting_len += bytes.len();
        self.len += bytes.len() as u64;
        self.owned.push(bytes);
        if self.waiting_len >= BUFFER_LEN || self.owned.len() >= OWNED_MAX { self.flush() } else { Ok(()) }
    }

    /// Writes zeros up to `offset`.
    pub(crate) fn pad_to(&mut self, offset: u64) -> Result<(), WriteError> {
        while self.len < offset {
            let count = (offset - self.len).min(ZEROS.len() as u64);
            self.write(&ZEROS[..grainstore_format::to_usize(count)])?;
        }
        Ok(())
    }

    /// Cuts the file at `len` bytes.
    pub(crate) fn truncate(&mut self, len: u64) -> Result<(), WriteError> {
        self.flush()?;
        self.file.truncate(len).map_err(WriteError::io("truncate", &self.path))?;
        self.len = len;
        Ok(())
    }

    /// Syncs the file and renames it to its final name.
    pub(crate) fn rename_into_place(mut self) -> Result<(), WriteError> {
        self.flush()?;
        self.file.sync().map_err(WriteError::io("sync", &self.path))?;
        self.storage.rename(&self.path, &self.final_path).map_err(WriteError::io("rename", &self.path))?;
        self.renamed = true;
        Ok(())
    }

    pub(crate) fn final_path(&self) -> &Path {
        &self.final_path
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        if self.waiting_len == 0 {
            return Ok(());
        }
        let slices = self.owned.iter().chain([&self.buffer]).filter(|bytes| !bytes.is_empty());
        let mut slices: Vec<IoSlice<'_>> = slices.map(|bytes| IoSlice::new(bytes)).collect();
        self.file.append_all(&mut slices).map_err(WriteError::io("write", &self.path))?;
        self.owned.clear();
        self.buffer.clear();
        self.waiting_len = 0;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.renamed {
            // If this fails, too, there is nothing more to do.
            let _ = self.storage.remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskStorage;

    #[test]
    fn bytes_come_in_the_order_in_which_they_were_given() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
        let mut output = Output::create(&storage, path.clone()).unwrap();
        let mut expected = Vec::new();
        for i in 0..4000_usize {
            let len =
                [0, 7, OWNED_LEN - 1, OWNED_LEN, 5000, 100_000, BUFFER_LEN + 3][if i % 500 == 0 { 6 } else { i % 6 }];
            let bytes: Vec<u8> = (0..len).map(|at| u8::try_from((at + i) % 251).unwrap()).collect();
            expected.extend_from_slice(&bytes);
            if i % 3 == 0 {
                output.write(&bytes).unwrap()
            } else {
                output.write_owned(bytes).unwrap()
            }
            if i % 11 == 0 {
                expected.resize(expected.len().next_multiple_of(64), 0);
                output.pad_to(expected.len() as u64).unwrap();
            }
            if i % 701 == 700 {
                expected.truncate(expected.len() - 5);
                output.truncate(expected.len() as u64).unwrap();
            }
            assert_eq!(output.len(), expected.len() as u64);
            assert!(output.waiting_len <= BUFFER_LEN + 100_000, "{} bytes wait", output.waiting_len);
        }
        output.rename_into_place().unwrap();
        assert!(std::fs::read(path).unwrap() == expected);
    }
}
