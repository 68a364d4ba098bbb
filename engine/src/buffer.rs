//! The memory that reads fill: aligned to blocks, on huge pages if there are any, and it can be split and joined.
//!
//! A [`Buffer`] owns a range of a region of memory; the region goes back to the system with the last of its buffers. No
//! two buffers overlap: a region starts as one buffer, and [`Buffer::split_off`] and [`Buffer::join`] preserve this. So
//! reads can fill the ends of one large region while its middle is in use.
//!
//! Pages of 2 MiB save much work: a direct read of 256 KiB into small pages is up to 64 segments for the device, into a
//! huge page it is one. New memory is zero; recycled memory holds what was last read into it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Block length: offset, length and memory address of a direct read are multiples of this.
pub const BLOCK_LEN: usize = 4096;

/// Bytes of a huge page.
pub const HUGE_LEN: usize = 2 << 20;

/// The kind of pages that memory consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages that the administrator has reserved.
    Huge,
    /// Pages that the kernel makes huge where it can.
    Transparent,
    /// Pages of the usual size.
    Small,
}

/// Owned bytes that begin at a 4096-byte boundary of memory.
pub struct Buffer {
    /// `None` for an empty buffer.
    region: Option<Arc<Region>>,
    start: usize,
    capacity: usize,
}

/// Memory from the system, all of it initialised.
struct Region {
    base: NonNull<u8>,
    len: usize,
    pages: Pages,
    allocation: Allocation,
    /// Number of references that are not buffers.
    ref_count: AtomicUsize,
}

/// How a region was allocated, which decides how it is freed.
enum Allocation {
    Allocated(Layout),
    /// The process and the mapping, which is longer than the region if its start had to be aligned.
    #[cfg(target_os = "linux")]
    Mapped {
        process: grainstore_host::ProcessId,
        start: NonNull<u8>,
        len: usize,
    },
}

// SAFETY: a region owns its memory, which is not bound to a thread, and gives access to it only through buffers.
unsafe impl Send for Region {}
// SAFETY: as above; its own fields never change.
unsafe impl Sync for Region {}

impl Buffer {
    /// Makes a buffer of `len` zero bytes or more: up to the next multiple of 4096.
    ///
    /// Like a vector, it ends the process if there is no memory: see [`Buffer::try_with_capacity`].
    #[must_use]
    pub fn with_capacity(len: usize) -> Self {
        let layout = || Layout::from_size_align(round_up(len), BLOCK_LEN).unwrap_or(Layout::new::<u8>());
        Self::try_with_capacity(len).unwrap_or_else(|| std::alloc::handle_alloc_error(layout()))
    }

    /// Makes a buffer of `len` zero bytes or more; `None` if the system has no memory for it.
    #[must_use]
    pub fn try_with_capacity(len: usize) -> Option<Self> {
        Self::of(len, Region::new)
    }

    /// Makes a buffer that reads fill and that callers never own: on reserved huge pages if there are any, and not
    /// inherited by a process that this one forks. `None` if the system has no memory for it.
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

    /// Length in bytes, a multiple of 4096.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// All bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match self.address() {
            // SAFETY: the bytes are in the region, which lives as long as this buffer, and are initialised; no other
            // buffer covers them, and this one is borrowed.
            Some(address) => unsafe { std::slice::from_raw_parts(address.as_ptr(), self.capacity) },
            None => &[],
        }
    }

    /// All bytes, for writing.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match self.address() {
            // SAFETY: as in `as_slice`, and this buffer is borrowed for writing.
            Some(address) => unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), self.capacity) },
            None => &mut [],
        }
    }

    /// Splits off the bytes from `at` on as another buffer. A split inside a block is made at the block's end; one past
    /// the end splits off an empty buffer.
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
    /// Both buffers, if `next` does not begin there.
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

    /// Offset in its region.
    #[must_use]
    pub fn region_offset(&self) -> usize {
        self.start
    }

    /// The region of the buffer, for engines that register regions with the kernel.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only io_uring uses it"))]
    pub(super) fn region(&self) -> Option<RegionRef> {
        self.region.as_ref().map(RegionRef::new)
    }

    /// The kind of pages that the buffer is on.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.region.as_ref().map_or(Pages::Small, |region| region.pages)
    }

    fn address(&self) -> Option<NonNull<u8>> {
        // SAFETY: `start` is at most the region's length.
        self.region.as_ref().map(|region| unsafe { region.base.add(self.start) })
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// A reference that keeps a region alive for the kernel. It gives no access to the bytes.
pub(super) struct RegionRef(Arc<Region>);

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only io_uring uses it"))]
impl RegionRef {
    fn new(region: &Arc<Region>) -> Self {
        // In this order, so that in between it counts as a buffer: see `has_buffers`.
        let reference = Self(Arc::clone(region));
        region.ref_count.fetch_add(1, Ordering::SeqCst);
        reference
    }

    /// Address of the first byte.
    pub(super) fn base(&self) -> *mut u8 {
        self.0.base.as_ptr()
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len
    }

    /// Whether any buffer of the region still exists.
    pub(super) fn has_buffers(&self) -> bool {
        // In this order, so that a reference which is made or dropped meanwhile counts as a buffer, not the reverse.
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
            region.exclude_from_forks();
            return Some(region);
        }
        Self::allocated(len)
    }

    fn allocated(len: usize) -> Option<Self> {
        let layout = Layout::from_size_align(len, BLOCK_LEN).ok()?;
        // SAFETY: the layout is not empty: `Buffer::of` never makes an empty region.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self {
            base,
            len,
            pages: Pages::Small,
            allocation: Allocation::Allocated(layout),
            ref_count: AtomicUsize::new(0),
        })
    }
}

#[cfg(target_os = "linux")]
impl Region {
    /// On reserved huge pages, if there are enough for all of it.
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
            allocation: Self::allocation(start, len),
            ref_count: AtomicUsize::new(0),
        })
    }

    /// Aligned to huge pages, so that the kernel can make all of it huge.
    fn mapped(len: usize) -> Option<Self> {
        use rustix::mm::{Advice, MapFlags, madvise};
        let mapped_len = len.checked_add(HUGE_LEN)?;
        let start = map(mapped_len, MapFlags::PRIVATE)?;
        let slack = start.addr().get().wrapping_neg() % HUGE_LEN;
        // SAFETY: `slack` is less than a huge page, and the mapping is a huge page longer than the region.
        let base = unsafe { start.add(slack) };
        // SAFETY: the range is inside the mapping; the advice changes no byte of it.
        let advised = unsafe { madvise(base.as_ptr().cast(), len, Advice::LinuxHugepage) };
        let pages = if advised.is_ok() { Pages::Transparent } else { Pages::Small };
        Some(Self { base, len, pages, allocation: Self::allocation(start, mapped_len), ref_count: AtomicUsize::new(0) })
    }

    fn allocation(start: NonNull<u8>, len: usize) -> Allocation {
        Allocation::Mapped { process: grainstore_host::ProcessId::current(), start, len }
    }

    /// Excludes the region from forks: a fork would copy memory that a device writes to, and use up reserved huge
    /// pages.
    fn exclude_from_forks(&self) {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is mapped; the advice changes no byte of it. If it fails, a fork costs more.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxDontFork) };
    }
}

/// Populates all pages of a mapping now. Reserved pages may exist and still be denied to this process, by its control
/// group or its memory policy; a later page fault would then end the process. If they are denied, or the kernel cannot
/// populate (before Linux 5.14), this removes the mapping and returns `false`.
#[cfg(target_os = "linux")]
fn populate(start: NonNull<u8>, len: usize) -> bool {
    use rustix::mm::{Advice, madvise, munmap};
    // SAFETY: the range is a new mapping of ours; its bytes stay zero.
    let populated = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxPopulateWrite) }.is_ok();
    if !populated {
        // SAFETY: it was mapped just now, and nothing else refers to it.
        let _ = unsafe { munmap(start.as_ptr().cast(), len) };
    }
    populated
}

#[cfg(target_os = "linux")]
fn map(len: usize, flags: rustix::mm::MapFlags) -> Option<NonNull<u8>> {
    use rustix::mm::{ProtFlags, mmap_anonymous};
    // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) };
    NonNull::new(start.ok()?.cast())
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.allocation {
            // SAFETY: it was allocated with this layout, and no buffer of the region is left.
            Allocation::Allocated(layout) => unsafe { dealloc(self.base.as_ptr(), layout) },
            #[cfg(target_os = "linux")]
            Allocation::Mapped { process, start, len } if process.is_current() => {
                // SAFETY: this process made the mapping with this length, and no buffer of the region is left.
                let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), len) };
            }
            // A forked process may have something else at this address.
            #[cfg(target_os = "linux")]
            Allocation::Mapped { .. } => {}
        }
    }
}

/// The most bytes that [`prefetch`] requests: the CPU's own prefetcher continues from there.
pub const PREFETCH_LEN_MAX: usize = 4096;

/// Asks the CPU to load the first bytes into its cache, and does not wait.
pub fn prefetch(bytes: &[u8]) {
    const LINE_LEN: usize = 64;
    for line in bytes.chunks(LINE_LEN).take(PREFETCH_LEN_MAX / LINE_LEN) {
        prefetch_line(line.as_ptr());
    }
}

#[cfg(target_arch = "x86_64")]
fn prefetch_line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing and cannot fail, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(target_arch = "aarch64")]
fn prefetch_line(address: *const u8) {
    // SAFETY: a prefetch reads nothing and cannot fail, whatever the address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{address}]", address = in(reg) address, options(nostack, preserves_flags))
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn prefetch_line(_address: *const u8) {}

/// Rounds a length up to whole blocks. A length that has no such multiple becomes `usize::MAX`, which no file or buffer
/// has: the request is refused.
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
    fn more_memory_than_available_is_none() {
        assert!(Buffer::try_with_capacity(usize::MAX).is_none());
        assert!(Buffer::try_with_capacity(1 << 60).is_none());
        assert!(Buffer::try_slab(1 << 60).is_none());
    }

    #[test]
    fn a_moved_buffer_keeps_its_bytes_and_its_address() {
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
        let one = Buffer::with_capacity(4096);
        let other = Buffer::with_capacity(4096);
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
