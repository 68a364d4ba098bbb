//! The process that made something: a forked one has its memory, but neither its threads nor its rings.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home(u32);

impl Home {
    /// The process that runs this.
    pub fn here() -> Self {
        Self(std::process::id())
    }

    /// Whether the caller runs in this process.
    pub fn is_here(self) -> bool {
        self == Self::here()
    }
}

/// What threads share and a forked process can do without: a thread that stayed behind may have held it then, and would
/// hold it for ever.
#[derive(Debug)]
pub struct Shared<T> {
    thing: Mutex<T>,
    home: Home,
}

impl<T> Shared<T> {
    /// Makes it shareable.
    pub fn new(thing: T) -> Self {
        Self { thing: Mutex::new(thing), home: Home::here() }
    }

    /// Waits for it; in a forked process it is `None` instead where somebody has it.
    pub fn lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.thing.try_lock() {
            Ok(thing) => Some(thing),
            // Nothing under the lock leaves it half done, so what a panicking thread left is whole.
            Err(TryLockError::Poisoned(thing)) => Some(thing.into_inner()),
            Err(TryLockError::WouldBlock) if self.home.is_here() => {
                Some(self.thing.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_has_is_waited_for_at_home_and_done_without_elsewhere() {
        let elsewhere = Shared { thing: Mutex::new(7), home: Home(0) };
        assert_eq!(elsewhere.lock().map(|thing| *thing), Some(7));
        let held = elsewhere.lock();
        assert!(elsewhere.lock().is_none());
        drop(held);
        let here = Shared::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| here.lock().into_iter().for_each(|mut count| *count += 1)));
            }
        });
        assert_eq!(here.lock().map(|count| *count), Some(4000));
    }
}
