//! What the writer asks of a disk: a small trait, so that tests can stop or fail it at any operation.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// What stands under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link, a device, ...
    Other,
}

/// A disk as the writer sees it. Paths are those that the caller of the writer gave, or stand below them.
pub trait Storage: Send + Sync {
    /// What stands at `path`; links are not followed.
    ///
    /// # Errors
    /// Where the system cannot say.
    fn kind(&self, path: &Path) -> io::Result<Option<EntryKind>>;
    /// The names in a directory, in any order.
    ///
    /// # Errors
    /// Where it cannot be listed.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;
    /// Makes a directory; its parent exists.
    ///
    /// # Errors
    /// `AlreadyExists`, or what the system says.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Holds a directory against other writers until the lock is dropped.
    ///
    /// # Errors
    /// `WouldBlock` where another holds it.
    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>>;
    /// Makes an empty file; replaces one that stands there.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;
    /// Opens a file for reading.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;
    /// Gives a file another name in the same directory; replaces what stands there.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a directory another name.
    ///
    /// # Errors
    /// `AlreadyExists` where something stands there.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Swaps two directories in one step.
    ///
    /// # Errors
    /// What the system says.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    ///
    /// # Errors
    /// What the system says.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// Held while a dataset is written.
pub trait DirectoryLock: Send + Sync {}

/// An open file of a [`Storage`].
pub trait StorageFile: Send + Sync {
    /// Writes all of `bytes` at the end.
    ///
    /// # Errors
    /// What the system says.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file at `len` bytes.
    ///
    /// # Errors
    /// What the system says.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` where the file ends before.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
    /// The length in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn file_len(&self) -> io::Result<u64>;
    /// Makes the file's bytes durable.
    ///
    /// # Errors
    /// What the system says; then nothing is known of the bytes.
    fn sync(&mut self) -> io::Result<()>;
}
