//! Memory that is about to be filled, and that the system may not have provided yet.
//!
//! An allocator returns addresses. The system provides a page when it is first written to, one fault a page: of a copy
//! of 110 KB into new memory, the faults take most of the time. Asking for all pages at once takes about half of that.

#[cfg(target_os = "linux")]
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Fewer bytes than this are not worth asking for: 16 pages.
const ASKED_LEN_MIN: usize = 64 << 10;
/// Where memory had its pages, the thread does not look at the next ones: a look takes a tenth of the time of a small copy.
#[cfg(target_os = "linux")]
const CALLS_PER_LOOK: u32 = 16;
/// From this length on each call looks: faults of all its pages would take far longer.
#[cfg(target_os = "linux")]
const ALWAYS_ASKED_LEN_MIN: usize = 1 << 20;

#[cfg(target_os = "linux")]
thread_local! {
    /// Calls of this thread until one looks.
    static CALLS_LEFT: Cell<u32> = const { Cell::new(0) };
}

/// Has the system provide the pages of `memory` now, if it has not yet. It changes no byte, and may do nothing: where the
/// system cannot (Linux before 5.14, other systems), they come one by one, as they are written to.
pub fn provide_pages(memory: &mut [MaybeUninit<u8>]) {
    if memory.len() >= ASKED_LEN_MIN {
        provide(memory);
    }
}

#[cfg(target_os = "linux")]
fn provide(memory: &mut [MaybeUninit<u8>]) {
    use rustix::mm::{Advice, madvise};
    use rustix::param::page_size;
    let page_len = page_size();
    let before = memory.as_ptr().align_offset(page_len);
    let after = memory.as_ptr_range().end.addr() % page_len;
    let len = memory.len().checked_sub(before).and_then(|len| len.checked_sub(after));
    let Some(len) = len.filter(|&len| len >= page_len) else { return };
    let whole_pages = &mut memory[before..before + len];
    // Recycled memory has its pages, and asking for all of them takes as long as half the copy. So only the last is
    // looked at, an allocator cuts new memory from the end of what it has; and not each time, for a loop that gets new
    // memory or recycled memory mostly gets the same the next time.
    if let Some(left) = CALLS_LEFT.get().checked_sub(1)
        && len < ALWAYS_ASKED_LEN_MIN
    {
        return CALLS_LEFT.set(left);
    }
    let mut is_there = 0_u8;
    let last = whole_pages.as_mut_ptr().wrapping_add(len - page_len);
    // SAFETY: the page is whole and within memory that is borrowed; the answer for one page is one byte.
    let asked = unsafe { libc::mincore(last.cast(), page_len, &raw mut is_there) };
    if asked == 0 && is_there & 1 == 1 {
        CALLS_LEFT.set(CALLS_PER_LOOK - 1);
    } else if asked == 0 {
        // SAFETY: the pages are whole and within memory that is borrowed for writing; to populate them changes no byte.
        let _ = unsafe { madvise(whole_pages.as_mut_ptr().cast(), len, Advice::LinuxPopulateWrite) };
    }
}

#[cfg(not(target_os = "linux"))]
fn provide(_memory: &mut [MaybeUninit<u8>]) {}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it could not run")]
mod tests {
    use super::*;

    /// Pages of the range that the process has, as the system counts them.
    fn pages_there(memory: &mut [MaybeUninit<u8>]) -> usize {
        let page_len = rustix::param::page_size();
        let mut answers = vec![0_u8; memory.len() / page_len];
        // SAFETY: the memory begins on a page and consists of whole ones, for each of which there is a byte.
        let asked = unsafe { libc::mincore(memory.as_mut_ptr().cast(), memory.len(), answers.as_mut_ptr()) };
        assert_eq!(asked, 0);
        answers.iter().filter(|&&answer| answer & 1 == 1).count()
    }

    /// New memory on pages of the usual size.
    fn map(len: usize) -> memmap2::MmapMut {
        let map = memmap2::MmapMut::map_anon(len).unwrap();
        // Where there are no huge pages, it is not needed.
        let _ = map.advise(memmap2::Advice::NoHugePage);
        map
    }

    #[test]
    fn pages_of_new_memory_are_there_at_once_and_no_byte_changes() {
        let page_len = rustix::param::page_size();
        if map(page_len).advise(memmap2::Advice::PopulateWrite).is_err() {
            return eprintln!("this system cannot populate pages");
        }
        let len = 64 * page_len;
        let mut map = map(len);
        map[..page_len].fill(7);
        // SAFETY: bytes that may be uninitialised are a weaker promise; nothing writes through this.
        let memory = unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast::<MaybeUninit<u8>>(), len) };
        assert_eq!(pages_there(memory), 1, "the system provides pages when they are written to");
        // Its first and last page are only touched in part, so they are left alone.
        provide_pages(&mut memory[100..len - 100]);
        assert_eq!(pages_there(memory), 63);
        assert!(map[..page_len].iter().all(|&byte| byte == 7) && map[page_len..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn after_memory_that_had_its_pages_the_next_is_not_looked_at_unless_it_is_large() {
        let page_len = rustix::param::page_size();
        if map(page_len).advise(memmap2::Advice::PopulateWrite).is_err() {
            return eprintln!("this system cannot populate pages");
        }
        let provided = |len: usize| {
            let mut map = map(len);
            // SAFETY: bytes that may be uninitialised are a weaker promise; nothing writes through this.
            let memory = unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast::<MaybeUninit<u8>>(), len) };
            provide_pages(memory);
            pages_there(memory) * page_len
        };
        let mut recycled = vec![MaybeUninit::new(1_u8); 300_000];
        provide_pages(&mut recycled);
        assert_eq!((provided(256 << 10), provided(2 << 20)), (0, 2 << 20));
        let later: Vec<usize> = (0..CALLS_PER_LOOK).map(|_| provided(256 << 10)).collect();
        assert_eq!(later.last(), Some(&(256 << 10)), "{later:?}");
    }

    #[test]
    fn any_part_of_memory_may_be_asked_for() {
        let mut memory = vec![MaybeUninit::new(1_u8); 300_000];
        for (start, len) in [(0, 0), (0, 1), (1, 65_536), (4095, 200_000), (100_000, 200_000)] {
            provide_pages(&mut memory[start..start + len]);
        }
        // SAFETY: all bytes were written when it was made.
        assert!(memory.iter().all(|byte| unsafe { byte.assume_init() } == 1));
    }
}
