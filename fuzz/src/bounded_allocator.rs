//! An allocator that ends the process where a single allocation is larger than any input justifies.

use std::alloc::{GlobalAlloc, Layout, System};

/// 48 MiB: the largest file here has under 160 KB, and LZ4 yields at most 255 bytes for one.
const MAX_LEN: usize = 48 << 20;

struct Bounded;

#[global_allocator]
static BOUNDED: Bounded = Bounded;

fn check(len: usize) {
    if len > MAX_LEN {
        eprintln!("an allocation of {len} bytes, at most {MAX_LEN} are justified");
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator unchanged; `check` returns or ends the process.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's duties are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's duties are the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        check(len);
        // SAFETY: the caller's duties are the same, and `start` came from the system's allocator.
        unsafe { System.realloc(start, layout, len) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's duties are the same, and `start` came from the system's allocator.
        unsafe { System.dealloc(start, layout) }
    }
}
