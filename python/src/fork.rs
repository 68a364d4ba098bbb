//! State of a Python object that several threads use, and that a forked process must not wait for.

use std::sync::MutexGuard;

use grainstore_host::ForkLock;
use pyo3::Python;

use crate::error::Raised;

/// Locks the value; `Forked` where a thread of the parent held the lock at the fork.
pub(crate) fn lock<T>(value: &ForkLock<T>) -> Result<MutexGuard<'_, T>, Raised> {
    value.lock().ok_or_else(|| {
        let what = "it was in use by a thread of the process that this one was forked from: start over here";
        Raised::new("Forked", what)
    })
}

/// Drops what may wait for its threads, and lets other threads of Python go on meanwhile.
pub(crate) fn release<T: Send>(value: T) {
    // Whoever drops an object of Python's holds the lock, and may hold it again.
    Python::attach(|py| py.detach(|| drop(value)));
}
