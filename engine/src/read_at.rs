//! Bytes at an offset: what a [`OpenFile`](super::OpenFile) needs of a file. Tests stand in for a device with it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// Reads at offsets. Only the first two have to be written; the others say by default that they are not to be had.
pub trait ReadAt: Send + Sync {
    /// Reads into the start of `bytes` and returns how many there are now: fewer than asked for
    /// where it pleases, none only at the end of the file.
    ///
    /// # Errors
    /// Those of `pread`. `Interrupted` makes the engine ask again; `EINVAL` to a direct read makes
    /// it turn to buffered ones.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The file's length in bytes, as it is now.
    ///
    /// # Errors
    /// Where it cannot be told.
    fn file_len(&self) -> io::Result<u64>;

    /// As [`read_at`](Self::read_at), but only what the page cache holds, without waiting for a device. `None` where it
    /// holds none of it, or that cannot be told.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    fn read_cached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let _ = (bytes, offset);
        Ok(None)
    }

    /// As [`read_at`](Self::read_at), and what the page cache did not hold before, it does not hold afterwards.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at), and `Unsupported`, `EOPNOTSUPP` or `EINVAL` where this is not to be had.
    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let _ = (bytes, offset);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// As [`read_at`](Self::read_at), into the room that `bytes` has: it becomes longer and is not moved.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    fn append_at(&self, bytes: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        append_with(bytes, |room| self.read_at(room, offset))
    }

    /// Makes direct reads buffered from now on.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn leave_direct(&self) -> io::Result<()> {
        Ok(())
    }

    /// The open file, for engines that hand it to the kernel themselves, and to be mapped.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl ReadAt for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn file_len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(target_os = "linux")]
    fn read_cached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        use rustix::io::Errno;
        match read_with(self, bytes, offset, rustix::io::ReadWriteFlags::NOWAIT) {
            Ok(read_len) => Ok(Some(read_len)),
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(target_os = "linux")]
    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        /// `RWF_DONTCACHE`, since Linux 6.14.
        const DONT_CACHE: u32 = 0x80;
        Ok(read_with(self, bytes, offset, rustix::io::ReadWriteFlags::from_bits_retain(DONT_CACHE))?)
    }

    /// The bytes need not be zeroed first.
    fn append_at(&self, bytes: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pread(self, rustix::buffer::spare_capacity(bytes), offset)?)
    }

    #[cfg(target_os = "linux")]
    fn leave_direct(&self) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(self)?;
        Ok(rustix::fs::fcntl_setfl(self, flags - rustix::fs::OFlags::DIRECT)?)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

#[cfg(target_os = "linux")]
fn read_with(
    file: &File,
    bytes: &mut [u8],
    offset: u64,
    flags: rustix::io::ReadWriteFlags,
) -> Result<usize, rustix::io::Errno> {
    rustix::io::preadv2(file, &mut [io::IoSliceMut::new(bytes)], offset, flags)
}

/// Whether a read that was to leave the page cache alone says that this is not to be had.
pub(super) fn must_cache(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    error.kind() == io::ErrorKind::Unsupported
        || [Errno::OPNOTSUPP, Errno::INVAL].iter().any(|errno| code == Some(errno.raw_os_error()))
}

/// Reads into the room of a vector by a function that wants bytes to write over.
pub(super) fn append_with(bytes: &mut Vec<u8>, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
    let start = bytes.len();
    bytes.resize(bytes.capacity(), 0);
    let room = bytes.get_mut(start..).unwrap_or_default();
    let room_len = room.len();
    let answer = read(room).map(|read_len| read_len.min(room_len));
    bytes.truncate(start + *answer.as_ref().unwrap_or(&0));
    answer
}
