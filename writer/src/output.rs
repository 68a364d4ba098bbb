//! A file under construction: appended through a buffer, under a temporary name until it is complete.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::WriteError;
use crate::storage::{Storage, StorageFile};

const BUFFER_LEN: usize = 1 << 20;
static ZEROS: [u8; 65536] = [0; 65536];

/// An append-only file. Its final name exists only after [`Output::rename_into_place`].
pub(crate) struct Output {
    renamed: bool,
    storage: Arc<dyn Storage>,
    file: Box<dyn StorageFile>,
    final_path: PathBuf,
    path: PathBuf,
    buffer: Vec<u8>,
    len: u64, // buffer included
}

impl Output {
    /// Creates the file under `final_path` plus `.tmp`.
    pub(crate) fn create(storage: &Arc<dyn Storage>, final_path: PathBuf) -> Result<Self, WriteError> {
        let mut path = final_path.clone().into_os_string();
        path.push(".tmp");
        let path = PathBuf::from(path);
        let file = storage.create(&path).map_err(WriteError::io("create", &path))?;
        Ok(Self { renamed: false, storage: Arc::clone(storage), file, final_path, path, buffer: Vec::new(), len: 0 })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if self.buffer.len() + bytes.len() > BUFFER_LEN {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_LEN {
            self.file.append(bytes).map_err(WriteError::io("write", &self.path))?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        self.len += bytes.len() as u64;
        Ok(())
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
        if !self.buffer.is_empty() {
            self.file.append(&self.buffer).map_err(WriteError::io("write", &self.path))?;
            self.buffer.clear();
        }
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
