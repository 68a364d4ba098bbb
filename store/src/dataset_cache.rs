//! What an opened dataset remembers of the parts of its index that it has loaded and checked.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::entry_rules::EntryTotals;

/// A column that was loaded and checked.
#[derive(Debug)]
pub(crate) struct CachedAttribute {
    /// Validity of the opened generation: bits past its last sample are zero.
    pub(crate) validity: Option<Vec<u8>>,
}

/// The result of `Dataset::load`, besides the chunk list. The entries stay in their section.
#[derive(Debug)]
pub(crate) struct CheckedEntries {
    /// Of the opened generation.
    pub(crate) totals: EntryTotals,
}

/// Makes sure that one thread loads the index, and remembers whether a load has failed.
#[derive(Debug)]
pub(crate) struct LoadControl {
    /// Held by the thread that loads.
    alone: Mutex<()>,
    /// The process whose threads may hold it.
    home: u32,
    /// The process in which a thread was started to load ahead; 0: none. A forked process does not have that thread.
    pub(crate) started_in: AtomicU32,
    pub(crate) has_failed: AtomicBool,
}

impl LoadControl {
    pub(crate) fn new() -> Self {
        Self {
            alone: Mutex::new(()),
            home: std::process::id(),
            started_in: AtomicU32::new(0),
            has_failed: AtomicBool::new(false),
        }
    }

    /// One thread loads, the others wait. In a forked process the lock might stay taken forever, so it is not used there.
    pub(crate) fn alone(&self) -> Option<MutexGuard<'_, ()>> {
        let is_home = self.home == std::process::id();
        is_home.then(|| self.alone.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
