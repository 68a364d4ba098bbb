//! Whether the files of samples are in memory already, and can be mapped: some of their pages are asked for, without
//! waiting for a device.

use grainstore_format::to_usize;
use grainstore_store::Collection;

use crate::engine::{IoMode, OpenFile};

/// Pages that are asked for, spread evenly.
const PROBES: u64 = 128;
/// Of these, how many may be missing: a file's last page may be, or one that the system has just given up.
const MISSING_MAX: u64 = 2;

/// Whether nearly all pages of the files are in the page cache of a local file system. It asks [`PROBES`] pages in all,
/// and stops as soon as too many are missing: then this costs three reads that nobody waits for. (`mincore` would ask
/// without reading, but answers only those who may write to the file.)
pub(crate) fn is_resident(dataset: &Collection) -> bool {
    let segments = dataset.segment_count() as u64;
    if segments == 0 {
        return false;
    }
    let mut missing = 0;
    let mut open: Option<(u64, (OpenFile, Pages))> = None;
    for probe in 0..PROBES {
        let segment = probe * segments / PROBES;
        if open.as_ref().is_none_or(|(number, _)| *number != segment) {
            let Some(file) = local_file(dataset, to_usize(segment)) else { return false };
            open = Some((segment, file));
        }
        let Some((_, (file, pages))) = &open else { return false };
        if *pages == Pages::Memory {
            continue;
        }
        // Where in the file: the golden ratio spreads any number of probes evenly.
        let place = u128::from(probe.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let offset = u64::try_from((u128::from(file.file_len()) * place) >> 64).unwrap_or(0);
        let is_there = file.read_cached_at(&mut [0], offset).is_ok_and(|read| read.is_some_and(|len| len > 0));
        missing += u64::from(!is_there);
        if missing > MISSING_MAX {
            return false;
        }
    }
    true
}

/// Where a file system has the pages of its files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Nowhere but in memory.
    Memory,
    /// On a device of this machine, and in the page cache those that were read.
    Device,
    /// On another machine. Pages in memory may get lost at any time, and take long to come back.
    Elsewhere,
}

/// The file of a segment, if it is on a local file system and can be mapped: a limit of the process's memory may forbid it.
pub(crate) fn local_file(dataset: &Collection, segment: usize) -> Option<(OpenFile, Pages)> {
    dataset.segment_file(segment).ok()?;
    OpenFile::open(dataset.segment_path(segment), IoMode::Mapped).ok()?;
    let file = OpenFile::open(dataset.segment_path(segment), IoMode::Buffered).ok()?;
    let pages = pages_of(&file);
    (pages != Pages::Elsewhere).then_some((file, pages))
}

#[cfg(target_os = "linux")]
fn pages_of(file: &OpenFile) -> Pages {
    /// As `f_type` names them: tmpfs, ramfs. The system cannot be asked for their pages without waiting.
    const MEMORY: [i128; 2] = [0x0102_1994, 0x8584_58F6];
    /// ext2 to ext4, XFS, Btrfs, F2FS, ZFS, bcachefs, EROFS, SquashFS, overlayfs.
    const DEVICE: [i128; 9] = [
        0x0000_EF53,
        0x5846_5342,
        0x9123_683E,
        0xF2F5_2010,
        0x2FC1_2FC1,
        0xCA45_1A4E,
        0xE0F5_E1E2,
        0x7371_7368,
        0x794C_7630,
    ];
    let kind = file.fd().and_then(|fd| rustix::fs::fstatfs(fd).ok()).map(|stat| i128::from(stat.f_type));
    match kind {
        Some(kind) if MEMORY.contains(&kind) => Pages::Memory,
        Some(kind) if DEVICE.contains(&kind) => Pages::Device,
        _ => Pages::Elsewhere,
    }
}

#[cfg(not(target_os = "linux"))]
fn pages_of(_file: &OpenFile) -> Pages {
    Pages::Elsewhere
}
