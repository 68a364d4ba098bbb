//! What threads share, and a forked process must not wait for: whoever held its lock may not be there.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::Python;

use crate::error::Raised;

/// A value behind a lock, and the process that it belongs to.
pub(crate) struct Home<T> {
    process: u32,
    place: Mutex<T>,
}

impl<T> Home<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: std::process::id(), place: Mutex::new(value) }
    }

    /// Whether this process made it.
    pub(crate) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// The value. Not waited for in a forked process.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, T>, Raised> {
        if self.is_here() {
            return Ok(self.place.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.place.try_lock() {
            Ok(value) => Ok(value),
            Err(TryLockError::Poisoned(value)) => Ok(value.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let what = "it was in use by a thread of the process that this one was forked from: begin anew here";
                Err(Raised::new("Forked", what))
            }
        }
    }

    /// The value, of what is being dropped.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.place.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops what may wait for its threads, and lets other threads of Python go on meanwhile.
pub(crate) fn release<T: Send>(value: T) {
    // Whoever drops an object of Python's holds the lock, and may hold it again.
    Python::attach(|py| py.detach(|| drop(value)));
}
