//! A file mapped into memory, to be read without a copy.
//!
//! Pages come from the page cache, shared with every process that maps the file. A page that is not in memory is read
//! alone, when it is first touched: the kernel's read-around at a page fault would fetch 128 KiB for a sample of 3 KB.
//! So larger reads announce beforehand which pages they will touch.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Instant;

use memmap2::{Advice, Mmap, MmapOptions};

use super::announcing::Announcing;
use super::map_guard::MapGuard;

/// Fewer bytes than this are at most five pages: a call to announce them costs as much as to read them from memory.
const WILL_NEED_LEN_MIN: usize = 16 << 10;

/// The mapped first bytes of a file. They stay mapped when the file is closed or removed.
#[derive(Debug)]
pub(super) struct FileMap {
    /// `None` for no bytes: an empty map is not possible.
    pages: Option<GuardedPages>,
}

#[derive(Debug)]
struct GuardedPages {
    /// Dropped first: pages are guarded only while they are mapped.
    guard: MapGuard,
    pages: Mmap,
    announcing: Announcing,
}

impl FileMap {
    /// Maps the first `len` bytes.
    pub(super) fn new(file: BorrowedFd<'_>, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        if len == 0 {
            return Ok(Self { pages: None });
        }
        if rustix::fs::fstat(file)?.st_size.cast_unsigned() < len as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the map is shared and never written through. Segments do not change once they have their final
        // name; the caller accepts (see `IoMode::Mapped`) that bytes of a file that somebody writes to change after they
        // were checked. Pages that a truncated file has lost become zeros by the guard.
        let pages = unsafe { MmapOptions::new().len(len).map(file.as_raw_fd())? };
        // Only a hint: without it more is read than is needed.
        let _ = pages.advise(Advice::Random);
        let (guard, announcing) = (MapGuard::new(&pages), Announcing::new());
        Ok(Self { pages: Some(GuardedPages { guard, pages, announcing }) })
    }

    /// All bytes. A page that cannot be read appears as zeros.
    pub(super) fn bytes(&self) -> &[u8] {
        self.pages.as_ref().map_or(&[], |guarded| {
            guarded.guard.watch();
            &guarded.pages
        })
    }

    /// Passes bytes of a range to `read`, which reads all of them at once; `None` if it ends past the file. Those that
    /// are not in memory are read together.
    pub(super) fn read<T>(&self, range: Range<usize>, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let bytes = self.bytes().get(range.clone())?;
        let Some(guarded) = self.pages.as_ref().filter(|_| range.len() >= WILL_NEED_LEN_MIN) else {
            return Some(read(bytes));
        };
        if guarded.announcing.is_on() {
            self.will_need(range);
        }
        let begun = Instant::now();
        let result = read(bytes);
        guarded.announcing.took(bytes.len(), begun.elapsed());
        Some(result)
    }

    /// Asks the system to read those pages of a range that are not in memory, all at once; does not wait for them.
    pub(super) fn will_need(&self, range: Range<usize>) {
        if let Some(guarded) = self.pages.as_ref().filter(|_| range.len() >= WILL_NEED_LEN_MIN) {
            // Only a hint: without it, each page is read when it is touched.
            let _ = guarded.pages.advise_range(Advice::WillNeed, range.start, range.len());
        }
    }
}
