//! Makes reads cold: removes what was read or written before from the page cache.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{Advice, fadvise, fdatasync, sync};
use serde::Serialize;

/// The file through which root empties all caches of the machine.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// How the cache was emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cold {
    /// Pages, directories and inodes of the whole machine.
    DropCaches,
    /// Only the pages of the given files; directories and inodes stay.
    Fadvise,
}

impl Cold {
    /// What was done, as text for people.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::DropCaches => "all caches of the machine were emptied before each step",
            Self::Fadvise => {
                "the files were taken out of the page cache before each step (root could empty all caches, \
                 those of directories and inodes too)"
            }
        }
    }
}

/// Empties the caches as far as this user may, at least those of `files`.
///
/// Other caches are ignored: one inside the disk, or one of the host of a virtual machine.
pub(crate) fn make_cold<P: AsRef<Path>>(files: impl Iterator<Item = P>) -> Cold {
    // A dirty page cannot be dropped.
    sync();
    if fs::write(DROP_CACHES, "3").is_ok() {
        return Cold::DropCaches;
    }
    for path in files {
        if let Ok(file) = File::open(path) {
            drop_pages(&file);
        }
    }
    Cold::Fadvise
}

/// Removes a file from the page cache, including pages that are not written yet.
pub(crate) fn make_file_cold(path: &Path) {
    if let Ok(file) = File::open(path) {
        // If it cannot be synced, some pages stay, as with advice that is ignored.
        let _ = fdatasync(&file);
        drop_pages(&file);
    }
}

fn drop_pages(file: &File) {
    // If the advice is ignored, the file stays warm; no caller could change that.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}
