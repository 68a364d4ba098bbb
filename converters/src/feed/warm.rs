//! Files that are looked through and read afterwards, in any order: brought into the page cache from end to end, at
//! the device's full rate, where all of them fit there. Looking through them alone would hop from header to header, each
//! hop a wait, and random reads of what follows would cost their own.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use grainstore_host::FreeMemory;
use grainstore_sources::Source;
use rustix::fs::Advice;

/// Asked of the kernel at once.
const STEP_LEN: u64 = 8 << 20;

/// Whether the files of a source take no more than half of the free memory, so that they stay until they are read.
pub(super) fn fits(source: &dyn Source) -> bool {
    let len = source.description().parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.len));
    !source.description().is_listed && FreeMemory::now().usable().is_some_and(|usable| len <= usable / 2)
}

/// Reads the file ahead until `stop` is set. Errors show when the file is read.
pub(super) fn warm(path: &Path, stop: &AtomicBool) {
    let Ok((file, len)) = grainstore_host::open_regular(path) else { return };
    let mut offset = 0;
    while offset < len && !stop.load(Relaxed) {
        if rustix::fs::fadvise(&file, offset, NonZeroU64::new(STEP_LEN), Advice::WillNeed).is_err() {
            return;
        }
        offset += STEP_LEN;
    }
}
