//! Reads at an offset: the trait through which an open file reads. Tests implement it to simulate a device.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

/// Reads at offsets. Only the first two methods are required; the others report by default that they are not supported.
pub trait ReadAt: Send + Sync {
    /// Reads into the start of `bytes` and returns the number of bytes read: it may be fewer than
    /// requested, and is 0 only at the end of the file.
    ///
    /// # Errors
    /// Those of `pread`. After `Interrupted` the engine repeats the read; after `EINVAL` to a direct read it
    /// falls back to buffered ones.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The file's length in bytes, as it is now.
    ///
    /// # Errors
    /// If the length is not available.
    fn file_len(&self) -> io::Result<u64>;

    /// As [`read_at`](Self::read_at), but only bytes that are in the page cache, without waiting for a device. `None`
    /// if none of them are, or if this is not supported.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    fn read_cached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let _ = (bytes, offset);
        Ok(None)
    }

    /// As [`read_at`](Self::read_at), and removes from the page cache what this read brought into it.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at), and `Unsupported`, `EOPNOTSUPP` or `EINVAL` if this is not supported.
    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let _ = (bytes, offset);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// As [`read_at`](Self::read_at), into the spare capacity of `bytes`, which is not reallocated.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    fn append_at(&self, bytes: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        append_with(bytes, |room| self.read_at(room, offset))
    }

    /// Switches from direct to buffered reads for good.
    ///
    /// # Errors
    /// If that is not possible.
    fn leave_direct(&self) -> io::Result<()> {
        Ok(())
    }

    /// The file descriptor, for engines that pass it to the kernel themselves, and for mapping.
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
        match read_with(self, bytes, offset, rustix::io::ReadWriteFlags::NOWAIT) {
            Ok(read_len) => Ok(Some(read_len)),
            Err(errno) if errno == Errno::AGAIN || FLAGS_REFUSED.contains(&errno) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    #[cfg(target_os = "linux")]
    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        /// `RWF_DONTCACHE`, since Linux 6.14.
        const DONT_CACHE: u32 = 0x80;
        Ok(read_with(self, bytes, offset, rustix::io::ReadWriteFlags::from_bits_retain(DONT_CACHE))?)
    }

    /// Overridden so that the spare capacity need not be zeroed first.
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
fn read_with(file: &File, bytes: &mut [u8], offset: u64, flags: rustix::io::ReadWriteFlags) -> Result<usize, Errno> {
    rustix::io::preadv2(file, &mut [io::IoSliceMut::new(bytes)], offset, flags)
}

/// What a read with flags fails with where the file system or the kernel does not know the flag, where there is no
/// `preadv2` (emulators, strict sandboxes), and where a sandbox forbids it. A read without flags may still work.
const FLAGS_REFUSED: [Errno; 4] = [Errno::OPNOTSUPP, Errno::INVAL, Errno::NOSYS, Errno::PERM];

/// Whether the error means that uncached reads are not supported here.
pub(super) fn must_cache(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    error.kind() == io::ErrorKind::Unsupported || FLAGS_REFUSED.iter().any(|errno| code == Some(errno.raw_os_error()))
}

/// Reads into the spare capacity of a vector by a function that needs initialised bytes.
pub(super) fn append_with(bytes: &mut Vec<u8>, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
    let start = bytes.len();
    bytes.resize(bytes.capacity(), 0);
    let room = &mut bytes[start..];
    let room_len = room.len();
    let result = read(room).map(|read_len| read_len.min(room_len));
    bytes.truncate(start + *result.as_ref().unwrap_or(&0));
    result
}
