//! Makes reads cold: what was read or written before is taken out of the page cache.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{Advice, fadvise, fdatasync, sync};
use serde::Serialize;

/// Where root empties all caches of the machine.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// How the cache was emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cold {
    /// Pages, directories and inodes of the whole machine.
    DropCaches,
    /// The pages of the files in question; directories and inodes stay.
    Fadvise,
}

impl Cold {
    /// For people: what was done.
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

/// Empties the caches as far as this user may; at least of `files`.
///
/// What cannot be emptied is passed over: a cache inside the disk, or one of the host of a virtual machine.
pub(crate) fn make_cold<P: AsRef<Path>>(files: impl Iterator<Item = P>) -> Cold {
    // A page that is not yet written cannot be dropped.
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

/// Takes a file out of the page cache, what is not written yet included.
pub(crate) fn make_file_cold(path: &Path) {
    if let Ok(file) = File::open(path) {
        // Where it cannot be synced some pages stay, as with advice that is not taken.
        let _ = fdatasync(&file);
        drop_pages(&file);
    }
}

fn drop_pages(file: &File) {
    // Advice that is not taken leaves the file warm, which no caller could change.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}
