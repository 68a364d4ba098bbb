//! What an opened dataset remembers of the parts of its index that it has loaded and checked.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::entry_rules::EntryTotals;

/// What is remembered of a column that was loaded and checked.
#[derive(Debug)]
pub(crate) struct CachedAttribute {
    /// Validity of the opened generation: bits past its last sample are zero.
    pub(crate) validity: Option<Vec<u8>>,
}

/// What `load` has checked, besides the chunk list. The entries stay in their section.
#[derive(Debug)]
pub(crate) struct CheckedEntries {
    /// Of the opened generation.
    pub(crate) totals: EntryTotals,
}

/// Who is loading, and whether that went wrong before.
#[derive(Debug)]
pub(crate) struct LoadControl {
    /// Held by the thread that loads.
    alone: Mutex<()>,
    /// The process that the threads are of which may hold it.
    home: u32,
    /// The process that a thread was started in to load ahead; 0: none. A forked one does not have it.
    pub(crate) started_in: AtomicU32,
    pub(crate) has_failed: AtomicBool,
}

impl LoadControl {
    pub(crate) fn new() -> Self {
        let (started_in, has_failed) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { alone: Mutex::new(()), home: std::process::id(), started_in, has_failed }
    }

    /// One thread loads, the others wait. In a forked process nobody might ever let go of the lock: it goes without.
    pub(crate) fn alone(&self) -> Option<MutexGuard<'_, ()>> {
        let is_home = self.home == std::process::id();
        is_home.then(|| self.alone.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
