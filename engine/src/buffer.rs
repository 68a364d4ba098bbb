//! The memory that reads land in: aligned to blocks, backed by huge pages where there are any, cut and joined at will.
//!
//! A [`Buffer`] owns a range of a region of memory; the region goes back to the system with the last of its buffers. No
//! two buffers overlap: they come into being whole, and [`Buffer::split_off`] and [`Buffer::join`] keep it so. So the
//! ends of one large region can be filled by reads while its middle is handed out.
//!
//! Pages of 2 MiB are worth a lot: a direct read of 256 KiB into small pages is up to 64 pieces for the device, into a
//! huge one it is a single piece. New memory is zero; recycled memory holds what was last read into it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that offset, length and memory of a direct read are multiples of.
pub const BLOCK_LEN: usize = 4096;

/// Bytes of a huge page.
pub const HUGE_LEN: usize = 2 << 20;

/// The pages that memory consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages that were set aside by the administrator.
    Huge,
    /// Pages that the kernel makes huge where it can.
    Transparent,
    /// The usual ones.
    Small,
}

/// Owned bytes that begin on a 4096-byte boundary of memory.
pub struct Buffer {
    /// `None` where it holds nothing.
    region: Option<Arc<Region>>,
    start: usize,
    capacity: usize,
}

/// Memory from the system, all of it initialised.
struct Region {
    base: NonNull<u8>,
    len: usize,
    pages: Pages,
    origin: Origin,
    /// References to it that are no buffers.
    ref_count: AtomicUsize,
}

/// How a region was made, so how it goes.
enum Origin {
    Allocated(Layout),
    /// The process and the mapping, which is longer than the region where its start had to be aligned.
    #[cfg(target_os = "linux")]
    Mapped {
        process: u32,
        start: NonNull<u8>,
        len: usize,
    },
}

// SAFETY: a region owns its memory, which no thread is tied to, and gives access to it only through buffers.
unsafe impl Send for Region {}
// SAFETY: as above; its own fields never change.
unsafe impl Sync for Region {}

impl Buffer {
    /// Makes a buffer of `len` zero bytes or more: up to the next multiple of 4096.
    ///
    /// Like a vector, it ends the process where there is no memory: see [`Buffer::try_with_capacity`].
    #[must_use]
    pub fn with_capacity(len: usize) -> Self {
        let layout = || Layout::from_size_align(round_up(len), BLOCK_LEN).unwrap_or(Layout::new::<u8>());
        Self::try_with_capacity(len).unwrap_or_else(|| std::alloc::handle_alloc_error(layout()))
    }

    /// Makes a buffer of `len` zero bytes or more; `None` where the system has no memory for it.
    #[must_use]
    pub fn try_with_capacity(len: usize) -> Option<Self> {
        Self::of(len, Region::new)
    }

    /// Makes a buffer for reads to land in and never to be handed out: of huge pages set aside, where there are any,
    /// and not there in a process that this one forks. `None` where the system has no memory for it.
    #[must_use]
    pub fn try_slab(len: usize) -> Option<Self> {
        Self::of(len, Region::slab)
    }

    fn of(len: usize, make: impl FnOnce(usize) -> Option<Region>) -> Option<Self> {
        if len == 0 {
            return Some(Self { region: None, start: 0, capacity: 0 });
        }
        let capacity = len.checked_next_multiple_of(BLOCK_LEN)?;
        Some(Self { region: Some(Arc::new(make(capacity)?)), start: 0, capacity })
    }

    /// Bytes that it holds, a multiple of 4096.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// All of its bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match self.place() {
            // SAFETY: the bytes lie in the region, which lives as long as this buffer, and are initialised; no other
            // buffer has them, and this one is borrowed.
            Some(place) => unsafe { std::slice::from_raw_parts(place.as_ptr(), self.capacity) },
            None => &[],
        }
    }

    /// All of its bytes, to be written.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match self.place() {
            // SAFETY: as in `as_slice`, and this buffer is borrowed for writing.
            Some(place) => unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), self.capacity) },
            None => &mut [],
        }
    }

    /// Cuts the bytes from `at` on off, as a buffer of their own. A cut inside a block is made at the block's end, one
    /// past the end cuts nothing off.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Self {
        let at = round_up(at).min(self.capacity);
        let tail = Self { region: self.region.clone(), start: self.start + at, capacity: self.capacity - at };
        self.capacity = at;
        tail
    }

    /// Joins this buffer and the one that begins where it ends.
    ///
    /// # Errors
    /// Both of them, where `next` does not begin there.
    pub fn join(mut self, next: Self) -> Result<Self, (Self, Self)> {
        if !self.touches(&next) {
            return Err((self, next));
        }
        self.capacity += next.capacity;
        Ok(self)
    }

    /// Whether `next` begins where this one ends, in the same region.
    #[must_use]
    pub fn touches(&self, next: &Self) -> bool {
        match (&self.region, &next.region) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs) && self.start + self.capacity == next.start,
            _ => false,
        }
    }

    /// Where in its region it begins.
    #[must_use]
    pub fn region_offset(&self) -> usize {
        self.start
    }

    /// The region that it is a part of, for engines that make regions known to the kernel.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "io_uring alone asks"))]
    pub(super) fn region(&self) -> Option<RegionRef> {
        self.region.as_ref().map(RegionRef::new)
    }

    /// What its memory consists of.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.region.as_ref().map_or(Pages::Small, |region| region.pages)
    }

    fn place(&self) -> Option<NonNull<u8>> {
        // SAFETY: `start` is at most the region's length.
        self.region.as_ref().map(|region| unsafe { region.base.add(self.start) })
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// A region that is kept alive for the kernel's sake. It gives no access to the bytes.
pub(super) struct RegionRef(Arc<Region>);

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "io_uring alone asks"))]
impl RegionRef {
    fn new(region: &Arc<Region>) -> Self {
        // In this order, so that it is taken for a buffer meanwhile: see `has_buffers`.
        let reference = Self(Arc::clone(region));
        region.ref_count.fetch_add(1, Ordering::SeqCst);
        reference
    }

    /// The first byte.
    pub(super) fn base(&self) -> *mut u8 {
        self.0.base.as_ptr()
    }

    /// Bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len
    }

    /// Whether a buffer of it is still there.
    pub(super) fn has_buffers(&self) -> bool {
        // In this order, so that a reference which comes or goes meanwhile is rather taken for a buffer.
        let ref_count = self.0.ref_count.load(Ordering::SeqCst);
        Arc::strong_count(&self.0) > ref_count
    }
}

impl Clone for RegionRef {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for RegionRef {
    fn drop(&mut self) {
        self.0.ref_count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for RegionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegionRef").field(&self.0.base).field(&self.0.len).finish()
    }
}

impl Region {
    fn new(len: usize) -> Option<Self> {
        #[cfg(target_os = "linux")]
        if len >= HUGE_LEN {
            return Self::mapped(len);
        }
        Self::allocated(len)
    }

    fn slab(len: usize) -> Option<Self> {
        #[cfg(target_os = "linux")]
        if len >= HUGE_LEN {
            let region = Self::huge(len).or_else(|| Self::mapped(len))?;
            region.leave_out_of_forks();
            return Some(region);
        }
        Self::allocated(len)
    }

    fn allocated(len: usize) -> Option<Self> {
        let layout = Layout::from_size_align(len, BLOCK_LEN).ok()?;
        // SAFETY: `Buffer::of` asks for no empty region.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { base, len, pages: Pages::Small, origin: Origin::Allocated(layout), ref_count: AtomicUsize::new(0) })
    }
}

#[cfg(target_os = "linux")]
impl Region {
    /// Of huge pages that were set aside: there must be enough for all of it.
    fn huge(len: usize) -> Option<Self> {
        use rustix::mm::MapFlags;
        if !len.is_multiple_of(HUGE_LEN) {
            return None;
        }
        let start = map(len, MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB)?;
        if !populate(start, len) {
            return None;
        }
        Some(Self {
            base: start,
            len,
            pages: Pages::Huge,
            origin: Self::origin(start, len),
            ref_count: AtomicUsize::new(0),
        })
    }

    /// From a boundary of huge pages on, so that all of it can be huge.
    fn mapped(len: usize) -> Option<Self> {
        use rustix::mm::{Advice, MapFlags, madvise};
        let mapped_len = len.checked_add(HUGE_LEN)?;
        let start = map(mapped_len, MapFlags::PRIVATE)?;
        let slack = start.addr().get().wrapping_neg() % HUGE_LEN;
        // SAFETY: `slack` is less than a huge page, which the mapping is longer than the region by.
        let base = unsafe { start.add(slack) };
        // SAFETY: the range lies in the mapping; the advice changes no byte of it.
        let advised = unsafe { madvise(base.as_ptr().cast(), len, Advice::LinuxHugepage) };
        let pages = if advised.is_ok() { Pages::Transparent } else { Pages::Small };
        Some(Self { base, len, pages, origin: Self::origin(start, mapped_len), ref_count: AtomicUsize::new(0) })
    }

    fn origin(start: NonNull<u8>, len: usize) -> Origin {
        Origin::Mapped { process: std::process::id(), start, len }
    }

    /// So that a fork under way neither copies memory that a device writes to, nor takes huge pages set aside.
    fn leave_out_of_forks(&self) {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is mapped; the advice changes no byte of it. Where it fails, a fork costs more.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxDontFork) };
    }
}

/// Gets all pages of a mapping now. Pages set aside may be there and still be denied to this process, by its control
/// group or its memory policy; found out later, that would end the process. Where they are, or the kernel (before Linux
/// 5.14) does not tell, the mapping goes: `false`.
#[cfg(target_os = "linux")]
fn populate(start: NonNull<u8>, len: usize) -> bool {
    use rustix::mm::{Advice, madvise, munmap};
    // SAFETY: the range is a new mapping of ours; its bytes stay zero.
    let populated = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxPopulateWrite) }.is_ok();
    if !populated {
        // SAFETY: it was mapped just now, and nobody else knows of it.
        let _ = unsafe { munmap(start.as_ptr().cast(), len) };
    }
    populated
}

#[cfg(target_os = "linux")]
fn map(len: usize, flags: rustix::mm::MapFlags) -> Option<NonNull<u8>> {
    use rustix::mm::{ProtFlags, mmap_anonymous};
    // SAFETY: a new mapping at a place of the kernel's choice touches no other memory.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) };
    NonNull::new(start.ok()?.cast())
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.origin {
            // SAFETY: it was allocated with this layout, and no buffer of it is left.
            Origin::Allocated(layout) => unsafe { dealloc(self.base.as_ptr(), layout) },
            #[cfg(target_os = "linux")]
            Origin::Mapped { process, start, len } if process == std::process::id() => {
                // SAFETY: it was mapped so by this process, and no buffer of it is left.
                let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), len) };
            }
            // A forked process may have something else there.
            #[cfg(target_os = "linux")]
            Origin::Mapped { .. } => {}
        }
    }
}

/// Bytes that [`prefetch`] asks for at most: the CPU's own prefetcher goes on from there.
pub const PREFETCH_LEN_MAX: usize = 4096;

/// Asks the CPU to fetch the first bytes into its cache, and does not wait.
pub fn prefetch(bytes: &[u8]) {
    const LINE_LEN: usize = 64;
    for line in bytes.chunks(LINE_LEN).take(PREFETCH_LEN_MAX / LINE_LEN) {
        prefetch_line(line.as_ptr());
    }
}

#[cfg(target_arch = "x86_64")]
fn prefetch_line(place: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing and cannot fail, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}

#[cfg(target_arch = "aarch64")]
fn prefetch_line(place: *const u8) {
    // SAFETY: a prefetch reads nothing and cannot fail, whatever the address.
    unsafe { std::arch::asm!("prfm pldl1keep, [{place}]", place = in(reg) place, options(nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn prefetch_line(_place: *const u8) {}

/// Up to whole blocks.
pub(super) fn round_up(len: usize) -> usize {
    len.checked_next_multiple_of(BLOCK_LEN).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_on_a_block_of_memory_and_hold_whole_blocks_of_zeros() {
        for len in [1, 511, 4095, 4096, 4097, 100_000, HUGE_LEN - 1, HUGE_LEN, 5 << 20] {
            for mut buffer in [Buffer::with_capacity(len), Buffer::try_slab(len).unwrap()] {
                assert_eq!(buffer.as_slice().as_ptr().addr() % BLOCK_LEN, 0, "{len}");
                assert_eq!(buffer.capacity(), len.div_ceil(BLOCK_LEN) * BLOCK_LEN);
                assert_eq!(buffer.as_mut_slice().len(), buffer.capacity());
                assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
            }
        }
        assert!(Buffer::with_capacity(0).as_slice().is_empty());
    }

    #[test]
    fn large_buffers_begin_on_a_huge_page() {
        if cfg!(target_os = "linux") {
            assert_eq!(Buffer::with_capacity(HUGE_LEN + 1).as_slice().as_ptr().addr() % HUGE_LEN, 0);
        }
    }

    #[test]
    fn more_memory_than_there_is_is_none() {
        assert!(Buffer::try_with_capacity(usize::MAX).is_none());
        assert!(Buffer::try_with_capacity(1 << 60).is_none());
        assert!(Buffer::try_slab(1 << 60).is_none());
    }

    #[test]
    fn a_moved_buffer_keeps_its_bytes_and_its_place() {
        let mut buffer = Buffer::with_capacity(4096);
        buffer.as_mut_slice()[4095] = 7;
        let place = buffer.as_slice().as_ptr();
        let moved = [Some(buffer)].map(|slot| slot.unwrap());
        assert_eq!((moved[0].as_slice()[4095], moved[0].as_slice().as_ptr()), (7, place));
    }

    #[test]
    fn parts_of_a_buffer_are_its_own_bytes_and_join_to_the_whole_again() {
        let mut head = Buffer::with_capacity(5 * 4096);
        let mut tail = head.split_off(4097);
        assert_eq!((head.capacity(), tail.capacity(), tail.region_offset()), (8192, 3 * 4096, 8192));
        head.as_mut_slice().fill(1);
        tail.as_mut_slice().fill(2);
        let nothing = tail.split_off(usize::MAX);
        assert_eq!(nothing.capacity(), 0);
        let (tail, head) = tail.join(head).unwrap_err();
        let whole = head.join(tail).unwrap().join(nothing).unwrap();
        assert_eq!(whole.capacity(), 5 * 4096);
        assert!(whole.as_slice()[..8192].iter().all(|&byte| byte == 1));
        assert!(whole.as_slice()[8192..].iter().all(|&byte| byte == 2));
    }

    #[test]
    fn buffers_of_different_regions_do_not_join() {
        let (one, other) = (Buffer::with_capacity(4096), Buffer::with_capacity(4096));
        assert!(!one.touches(&other));
        assert!(one.join(other).is_err());
        assert!(Buffer::with_capacity(0).join(Buffer::with_capacity(0)).is_err());
    }

    #[test]
    fn the_bytes_live_as_long_as_the_last_part() {
        let mut head = Buffer::with_capacity(3 << 20);
        head.as_mut_slice().fill(9);
        let tail = head.split_off(1 << 20);
        drop(head);
        assert!(tail.as_slice().iter().all(|&byte| byte == 9));
    }
}
