//! A file mapped into memory, to be read without a copy.
//!
//! Pages come from the page cache, shared with every process that maps the file. A page that is not in memory is read
//! alone, when it is first touched: the kernel's read-around at a page fault would fetch 128 KiB for a sample of 3 KB.
//! So larger reads announce beforehand which pages they will touch.

use std::cell::Cell;
use std::io;
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI64, Ordering};
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
        } else {
            note_waits();
        }
        let begun = Instant::now();
        let result = read(bytes);
        guarded.announcing.took(bytes.len(), begun.elapsed(), has_waited_for_device);
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

thread_local! {
    /// The thread's faults that waited for a device, when it was asked last; `None` before its first read.
    static WAITS: Cell<Option<i64>> = const { Cell::new(None) };
}

/// Remembers how often this thread has waited by now, unless it remembers an earlier number.
fn note_waits() {
    if WAITS.get().is_none() {
        WAITS.set(Some(wait_count()));
    }
}

/// Whether this thread has waited for a device, at a page fault, since it was asked or noted last.
fn has_waited_for_device() -> bool {
    let now = wait_count();
    WAITS.replace(Some(now)) != Some(now)
}

/// Faults of this thread so far that waited for a device; another number each time if the system does not count them.
fn wait_count() -> i64 {
    static UNCOUNTED: AtomicI64 = AtomicI64::new(0);
    counted_waits().unwrap_or_else(|| UNCOUNTED.fetch_sub(1, Ordering::Relaxed))
}

#[cfg(target_os = "linux")]
fn counted_waits() -> Option<i64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: it writes the numbers of this thread to memory that is large enough for them.
    let asked = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: zeros are valid numbers, and so is what was written.
    let usage = unsafe { usage.assume_init() };
    // A system that emulates Linux may count no faults at all.
    (asked == 0 && usage.ru_minflt > 0).then_some(usage.ru_majflt)
}

#[cfg(not(target_os = "linux"))]
fn counted_waits() -> Option<i64> {
    None
}
