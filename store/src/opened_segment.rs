//! Whether a file that was opened to read samples from is the segment that the dataset was opened with.
//!
//! A writer may delete a segment whole and give its name to another, of the same length: then the path leads to other
//! samples. So the file that is read from is compared, not the path: the fingerprint in its own index, which is one
//! read of its last block. spec.md: FPR-3, MAN-3.

use std::os::fd::BorrowedFd;
use std::path::Path;

use grainstore_format::memory::zeroed;
use grainstore_format::{BLOCK_LEN, Fingerprint, Footer, to_usize};

use crate::StoreError;
use crate::index::MAX_DIRECTORY_LEN;

/// A file that is open to read samples from.
#[derive(Debug, Clone, Copy)]
pub struct OpenedFile<'a> {
    /// Its length in bytes.
    pub len: u64,
    /// Its descriptor, if it has one: a file that is mapped may be closed.
    pub fd: Option<BorrowedFd<'a>>,
}

/// What the system says of a file: another file, or one that was written to, has another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
    /// When its bytes changed, and when anything of it did: seconds and nanoseconds.
    times: [i64; 4],
}

impl FileId {
    /// `None` if the file has no descriptor, or its file system keeps no times.
    pub(crate) fn of(file: &OpenedFile<'_>) -> Option<Self> {
        let stat = rustix::fs::fstat(file.fd?).ok()?;
        // The types differ between systems.
        let nanoseconds = |part| i64::try_from(part).ok();
        let (modified, changed) = (nanoseconds(stat.st_mtime_nsec)?, nanoseconds(stat.st_ctime_nsec)?);
        let times = [stat.st_mtime, modified, stat.st_ctime, changed];
        (stat.st_ctime != 0).then_some(Self { device: stat.st_dev as u64, inode: stat.st_ino, times })
    }
}

/// The fingerprint in the own index of a native segment of `len` bytes. `read` fills a buffer from an offset of it.
/// The outer error is that of `read`, the inner one is of what it has read.
pub(crate) fn fingerprint_of<E>(
    path: &Path,
    len: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
) -> Result<Result<Fingerprint, StoreError>, E> {
    // Nearly always all of the directory is in the last block, with the footer.
    let mut bytes = vec![0; to_usize(len.min(BLOCK_LEN))];
    let mut start = len - bytes.len() as u64;
    read(&mut bytes, start)?;
    let footer = match footer_in(path, &bytes, len) {
        Ok(footer) => footer,
        Err(error) => return Ok(Err(error)),
    };
    if footer.directory_offset() < start {
        start = footer.directory_offset();
        bytes = match zeroed(u64::from(footer.directory_len())) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(StoreError::no_memory(path, error))),
        };
        read(&mut bytes, start)?;
    }
    let directory = bytes.get(to_usize(footer.directory_offset() - start)..).unwrap_or_default();
    let directory = directory.get(..footer.directory_len() as usize).unwrap_or_default();
    let crc = crc32fast::hash(directory);
    if crc != footer.directory_crc() {
        let what = format!("its CRC-32 is {crc:08x}, the footer has {:08x}", footer.directory_crc());
        return Ok(Err(StoreError::damaged(path, "directory", what)));
    }
    Ok(Ok(Fingerprint::of_directory(directory)))
}

/// The footer at the end of `bytes`, the last ones of a file of `len` bytes.
fn footer_in(path: &Path, bytes: &[u8], len: u64) -> Result<Footer, StoreError> {
    let tail = bytes.get(bytes.len().saturating_sub(Footer::LEN)..).unwrap_or_default();
    let footer = Footer::decode(tail, len).map_err(|error| StoreError::format(path, error))?;
    let directory_len = u64::from(footer.directory_len());
    if directory_len > MAX_DIRECTORY_LEN {
        return Err(StoreError::damaged(path, "footer", format!("directory of {directory_len} bytes")));
    }
    Ok(footer)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_that_takes_the_place_of_another_has_another_id() {
        let folder = tempfile::tempdir().unwrap();
        let id = |path: &Path| {
            let file = File::open(path).unwrap();
            FileId::of(&OpenedFile { len: 1, fd: Some(file.as_fd()) }).unwrap()
        };
        let path = folder.path().join("0");
        std::fs::write(&path, "a").unwrap();
        let first = id(&path);
        assert_eq!(first, id(&path));
        let other = folder.path().join("1");
        std::fs::write(&other, "b").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_ne!(first, id(&path));
        assert_eq!(FileId::of(&OpenedFile { len: 1, fd: None }), None);
    }
}
