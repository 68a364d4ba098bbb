//! What an opened dataset remembers of the parts of its index that it has loaded and checked.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{MutexGuard, OnceLock};

use grainstore_host::ForkLock;

use crate::entry_rules::EntryTotals;

/// A column that was loaded.
#[derive(Debug)]
pub(crate) struct CachedAttribute {
    /// Set once all values are known to be of the column's type.
    pub(crate) is_checked: OnceLock<()>,
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
    alone: ForkLock<()>,
    /// The process in which a thread was started to load ahead; 0: none. A forked process does not have that thread.
    pub(crate) started_in: AtomicU32,
    pub(crate) has_failed: AtomicBool,
}

impl LoadControl {
    pub(crate) fn new() -> Self {
        Self { alone: ForkLock::default(), started_in: AtomicU32::new(0), has_failed: AtomicBool::new(false) }
    }

    /// One thread loads, the others wait. A forked process loads without the lock if it was held at the fork.
    pub(crate) fn alone(&self) -> Option<MutexGuard<'_, ()>> {
        self.alone.lock()
    }
}
