//! The storage of this machine's file system.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use grainstore_host::{SteadyFile, open_regular, rename_new, sync_directory};
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};

use crate::storage::{DirectoryLock, EntryKind, Storage, StorageFile};

/// Files and directories of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskStorage;

struct DiskFile(SteadyFile);

struct DiskLock {
    _directory: File, // the lock ends with it
}

impl DirectoryLock for DiskLock {}

impl Storage for DiskStorage {
    fn kind(&self, path: &Path) -> io::Result<Option<EntryKind>> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(Some(EntryKind::Directory)),
            Ok(metadata) if metadata.is_file() => Ok(Some(EntryKind::File)),
            Ok(_) => Ok(Some(EntryKind::Other)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        let directory = File::options().read(true).custom_flags(DIRECTORY_ITSELF).open(path)?;
        match directory.try_lock() {
            // Between opening and locking, another writer may have moved or replaced the directory.
            Ok(()) if !is_at(&directory, path)? => Err(io::ErrorKind::WouldBlock.into()),
            Ok(()) => Ok(Box::new(DiskLock { _directory: directory })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        // A link under this name is removed, not followed.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        Ok(Box::new(DiskFile(SteadyFile::new(file))))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let (file, _) = open_regular(path)?;
        Ok(Box::new(DiskFile(SteadyFile::new(file))))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        rename_new(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        sync_directory(path)
    }
}

#[expect(clippy::cast_possible_wrap, reason = "open flags are bits")]
const DIRECTORY_ITSELF: i32 = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).bits() as i32;

/// Whether `path` names this directory.
fn is_at(directory: &File, path: &Path) -> io::Result<bool> {
    let held = directory.metadata()?;
    let named = fs::symlink_metadata(path)?;
    Ok((held.dev(), held.ino()) == (named.dev(), named.ino()))
}

impl StorageFile for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn append_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !slices.is_empty() {
            match self.0.write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut slices, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.get_ref().read_exact_at(bytes, offset)
    }

    fn file_len(&self) -> io::Result<u64> {
        Ok(self.0.get_ref().metadata()?.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}
