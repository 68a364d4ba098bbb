//! State of a Python object that several threads use, and that a forked process must not wait for.

use std::sync::MutexGuard;

use grainstore_host::ForkLock;
use pyo3::Python;

use crate::error::Raised;

/// Locks the value; raises `Forked` if a thread of the parent process held the lock at the fork.
pub(crate) fn lock<T>(value: &ForkLock<T>) -> Result<MutexGuard<'_, T>, Raised> {
    value.lock().ok_or_else(|| {
        let what = "it was in use by a thread of the process that this one was forked from: start over here";
        Raised::new("Forked", what)
    })
}

/// Drops a value that may wait for its threads, while other threads of Python continue.
pub(crate) fn release<T: Send>(value: T) {
    // Python holds its lock when it drops an object, and takes it again afterwards.
    Python::attach(|py| py.detach(|| drop(value)));
}
