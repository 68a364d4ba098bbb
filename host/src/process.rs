//! Fork guards: a forked process has a copy of the memory, but none of the threads and rings that use it.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// The id of a process. Stored beside a value, it shows whether the value was copied by a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId(u32);

impl ProcessId {
    /// The process that runs this.
    pub fn current() -> Self {
        Self(std::process::id())
    }

    /// Whether the caller runs in this process, and not in one forked from it.
    pub fn is_current(self) -> bool {
        self == Self::current()
    }
}

/// A lock that a forked process never waits for: a thread that exists only in the parent may have held it at the fork,
/// and its copy here is never released.
#[derive(Debug)]
pub struct ForkLock<T> {
    value: Mutex<T>,
    made_in: ProcessId,
    /// The lock that a forked process made in the place of this one.
    renewed: OnceLock<Box<ForkLock<T>>>,
}

impl<T> ForkLock<T> {
    /// A lock of this process.
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), made_in: ProcessId::current(), renewed: OnceLock::new() }
    }

    /// Whether this process made it.
    pub fn is_current(&self) -> bool {
        self.made_in.is_current()
    }

    /// Waits for the lock. In a forked process it does not wait: `None` if the lock is held.
    pub fn lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(value),
            // Users change the value in one step, so a panic under the lock leaves it whole.
            Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
            Err(TryLockError::WouldBlock) if self.is_current() => {
                Some(self.value.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits for the lock. A forked process never takes over the value: it begins with a new one, which it keeps.
    pub fn lock_or_renew(&self) -> MutexGuard<'_, T>
    where
        T: Default,
    {
        let mut lock = self;
        while !lock.is_current() {
            lock = lock.renewed.get_or_init(Box::default);
        }
        lock.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, without locking: `&mut self` proves that nobody holds the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Default for ForkLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock that another process made.
    fn forked<T>(value: T) -> ForkLock<T> {
        ForkLock { made_in: ProcessId(0), ..ForkLock::new(value) }
    }

    #[test]
    fn a_forked_process_does_not_wait() {
        let mut forked = forked(7);
        assert_eq!(forked.lock().map(|value| *value), Some(7));
        let held = forked.lock();
        assert!(forked.lock().is_none());
        drop(held);
        assert_eq!((*forked.get_mut(), forked.is_current()), (7, false));
    }

    #[test]
    fn a_forked_process_begins_anew() {
        let forked = forked(7);
        let held = forked.lock();
        assert_eq!(*forked.lock_or_renew(), 0);
        *forked.lock_or_renew() += 1;
        drop(held);
        assert_eq!(*forked.lock_or_renew(), 1);

        let current = ForkLock::new(7);
        assert_eq!(*current.lock_or_renew(), 7);
    }

    #[test]
    fn threads_wait_for_each_other() {
        let count = ForkLock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        *count.lock().unwrap() += 1;
                    }
                });
            }
        });
        assert_eq!(count.lock().map(|count| *count), Some(4000));
    }
}
