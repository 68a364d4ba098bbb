//! Reads files into the page cache before they are scanned and then read in any order, if all of them fit there.
//! Reading them from end to end uses the full rate of the device. A scan alone would wait for the device at each
//! header, and so would the random reads that follow.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use grainstore_host::FreeMemory;
use grainstore_reader::engine::{IoMode, OpenFile};
use grainstore_sources::Source;
use rustix::fs::Advice;

/// Bytes that the kernel is asked to read at once.
const STEP_LEN: u64 = 8 << 20;

/// Pages that are asked for, spread evenly, and how many of them may be missing.
const PROBES: usize = 64;
const MISSING_MAX: usize = 2;

/// Whether the files of a source take at most half of the free memory, so that they stay in the page cache until they
/// are read.
pub(super) fn fits(source: &dyn Source) -> bool {
    let len = source.description().parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.len));
    !source.description().is_listed && FreeMemory::now().usable().is_some_and(|usable| len <= usable / 2)
}

/// Reads the file into the page cache until `stop` is set. Errors are reported when the file is read.
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

/// Whether the files of a source are in the page cache now: some of their pages are asked for, without waiting for a
/// device. `false` if the file system does not answer that.
pub(super) fn is_cached(source: &dyn Source) -> bool {
    let parts = &source.description().parts;
    let is_missing = |probe: &usize| {
        let file = OpenFile::open(&parts[probe * parts.len() / PROBES].path, IoMode::Buffered);
        file.map_or(true, |file| {
            let offset = file.file_len() / PROBES as u64 * *probe as u64;
            !file.read_cached_at(&mut [0], offset).is_ok_and(|read| read.is_some_and(|len| len > 0))
        })
    };
    (0..PROBES).filter(is_missing).nth(MISSING_MAX).is_none()
}
