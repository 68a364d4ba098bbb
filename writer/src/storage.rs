//! The file operations that the writer uses, as a small trait, so that tests can fail or stop at any of them.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::path::Path;

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link, a device, ...
    Other,
}

/// The file operations of a writer. Paths are those that the caller gave to the writer, or paths below them.
pub trait Storage: Send + Sync {
    /// The type of the entry at `path`, if there is one; links are not followed.
    ///
    /// # Errors
    /// Any error of the operating system except `NotFound`.
    fn kind(&self, path: &Path) -> io::Result<Option<EntryKind>>;
    /// The names in a directory, in any order.
    ///
    /// # Errors
    /// If it cannot be listed.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;
    /// Creates a directory; its parent exists.
    ///
    /// # Errors
    /// `AlreadyExists`, or any other error of the operating system.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Locks a directory against other writers until the lock is dropped.
    ///
    /// # Errors
    /// `WouldBlock` if another writer holds the lock.
    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>>;
    /// Creates an empty file; replaces an existing one.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;
    /// Opens a file for reading.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;
    /// Renames a file in its directory; replaces an existing one.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames a directory without replacing anything.
    ///
    /// # Errors
    /// `AlreadyExists` if the new name exists.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Swaps two directories in one step.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// A lock on a directory, held while a dataset is written.
pub trait DirectoryLock: Send + Sync {}

/// An open file of a [`Storage`].
pub trait StorageFile: Send + Sync {
    /// Writes all of `bytes` at the end.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Writes all of `slices` at the end, one after the other. The slices may be changed.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn append_all(&mut self, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        slices.iter().try_for_each(|slice| self.append(slice))
    }
    /// Cuts the file at `len` bytes.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
    /// The length in bytes.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn file_len(&self) -> io::Result<u64>;
    /// Makes the file's bytes durable.
    ///
    /// # Errors
    /// Any error of the operating system. It is unknown then which bytes are durable.
    fn sync(&mut self) -> io::Result<()>;
}
