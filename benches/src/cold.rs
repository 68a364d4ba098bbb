//! Cold caches: nothing of a dataset is left in the page cache.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::fs::File;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use crate::is_test_run;

/// Asks the kernel to drop the files of the dataset directory from its cache. If this is not a test run and the process
/// has the permission, drops everything that it caches, also directory entries and block maps.
///
/// # Panics
/// If the directory cannot be read.
pub fn drop_caches(dataset: &Path) {
    for entry in std::fs::read_dir(dataset).unwrap() {
        let file = File::open(entry.unwrap().path()).unwrap();
        // Dirty pages are not dropped; a file that was just copied here may have some.
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    }
    if !is_test_run() {
        // Needs root. Without it the files are cold, but their directory entries may be warm.
        let _ = std::fs::write("/proc/sys/vm/drop_caches", "3");
    }
}
