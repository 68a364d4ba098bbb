//! A file mapped into memory, to be read without a copy.
//!
//! Pages come from the page cache, shared with every process that maps the file. A page that is not in memory is read
//! when it is first touched, by itself: the kernel's reading around a fault would fetch 128 KiB for a sample of 3 KB.
//! So larger reads say beforehand which pages they will touch.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use memmap2::{Advice, Mmap, MmapOptions};

/// Fewer bytes than this are at most five pages: to ask for them costs as much as to read them from memory.
const ANNOUNCED_LEN_MIN: usize = 16 << 10;

/// The first bytes of a file. They stay mapped when the file is closed or removed.
#[derive(Debug)]
pub(super) struct Map {
    /// `None` for no bytes: the system maps only pages.
    pages: Option<Mmap>,
}

impl Map {
    /// Maps the first `len` bytes.
    pub(super) fn new(file: BorrowedFd<'_>, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        if len == 0 {
            return Ok(Self { pages: None });
        }
        if rustix::fs::fstat(file)?.st_size.cast_unsigned() < len as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the map is shared and never written through. Segments do not change once they stand under their
        // name; who maps a file was told (see `IoMode::Mapped`) that it must be neither cut nor written meanwhile:
        // a cut ends the process with SIGBUS, and other bytes fail their checksum or are told as wrong ones.
        let pages = unsafe { MmapOptions::new().len(len).map(file.as_raw_fd())? };
        // Only advice: without it more is read than is needed.
        let _ = pages.advise(Advice::Random);
        Ok(Self { pages: Some(pages) })
    }

    /// All bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.pages.as_deref().unwrap_or_default()
    }

    /// Lets the system read what is not in memory of a range ahead of its use, all at once; does not wait for it.
    pub(super) fn announce(&self, range: Range<usize>) {
        if let Some(pages) = self.pages.as_ref().filter(|_| range.len() >= ANNOUNCED_LEN_MIN) {
            // Only advice: without it, each page is read when it is touched.
            let _ = pages.advise_range(Advice::WillNeed, range.start, range.len());
        }
    }
}
