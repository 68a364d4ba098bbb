//! A window over a row of items that many threads make and one thread takes, in order.
//!
//! ```text
//! taken | ready  -  ready ready  -   - | not begun
//!       front (delivered next)         begun
//! ```
//!
//! A thread begins the next position, asks for room for its bytes, and puts the item. The bytes between front and
//! begun are bounded. The item at the front never waits for room, whatever it needs, or all would wait for it; so
//! the bound is passed by one item at most.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bounds of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowBounds {
    /// Positions in all.
    pub(crate) count: usize,
    /// Positions begun and not taken.
    pub(crate) positions_max: usize,
    /// Bytes of items begun and not taken; one item may pass it.
    pub(crate) bytes_max: u64,
}

/// The next item, for the thread that takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<T> {
    /// It is ready.
    Item(T),
    /// It was not ready within the time given.
    NotYet,
    /// All were taken, or no thread is left to make more.
    End,
}

pub(crate) struct OrderedWindow<T> {
    bounds: WindowBounds,
    state: Mutex<WindowState<T>>,
    /// For those that would begin: a position was set free, or the window was closed.
    positions: Condvar,
    /// For those that wait for room: bytes were set free, or the front has come to them.
    room: Condvar,
    /// For the one that takes: the front is ready, or a maker has left.
    ready: Condvar,
}

struct WindowState<T> {
    front: usize,
    begun: usize,
    end: usize,
    held_bytes: u64,
    slots: VecDeque<Option<ReadyItem<T>>>,
    makers: usize,
    waiting_for_room: usize,
    closed: bool,
}

struct ReadyItem<T> {
    item: T,
    len: u64,
}

/// One that makes items. When the last has gone, the one that takes stops waiting.
pub(crate) struct Maker<'a, T> {
    window: &'a OrderedWindow<T>,
}

impl<T> OrderedWindow<T> {
    pub(crate) fn new(bounds: WindowBounds) -> Self {
        let state = WindowState {
            front: 0,
            begun: 0,
            end: bounds.count,
            held_bytes: 0,
            slots: VecDeque::new(),
            makers: 0,
            waiting_for_room: 0,
            closed: false,
        };
        let positions = Condvar::new();
        let room = Condvar::new();
        let ready = Condvar::new();
        Self { bounds, state: Mutex::new(state), positions, room, ready }
    }

    pub(crate) fn maker(&self) -> Maker<'_, T> {
        self.lock().makers += 1;
        Maker { window: self }
    }

    /// The item at the front, waiting for it no longer than `patience`.
    pub(crate) fn next(&self, patience: Duration) -> Next<T> {
        let mut state = self.lock();
        if state.front_is_coming() {
            let waited = self.ready.wait_timeout_while(state, patience, |state| state.front_is_coming());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let Some(item) = state.take_front() else {
            return if state.front_is_coming() { Next::NotYet } else { Next::End };
        };
        let waiting_for_room = state.waiting_for_room;
        drop(state);
        self.positions.notify_one();
        if waiting_for_room > 0 {
            self.room.notify_all();
        }
        Next::Item(item)
    }

    /// Ends all waiting: nobody begins another item.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.positions.notify_all();
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, WindowState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> WindowState<T> {
    /// Whether the front is empty and another thread may still fill it.
    fn front_is_coming(&self) -> bool {
        self.front < self.end && self.makers > 0 && !matches!(self.slots.front(), Some(Some(_)))
    }

    fn take_front(&mut self) -> Option<T> {
        let ReadyItem { item, len } = self.slots.front_mut()?.take()?;
        self.slots.pop_front();
        self.front += 1;
        self.held_bytes -= len;
        Some(item)
    }
}

impl<T> Maker<'_, T> {
    /// The next position that nobody has begun; `None` where there is none or the window was closed.
    pub(crate) fn begin(&self) -> Option<usize> {
        let positions_max = self.window.bounds.positions_max;
        let full = |state: &mut WindowState<T>| {
            !state.closed && state.begun < state.end && state.begun - state.front >= positions_max
        };
        let waited = self.window.positions.wait_while(self.window.lock(), full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed || state.begun == state.end {
            return None;
        }
        state.begun += 1;
        state.slots.push_back(None);
        Some(state.begun - 1)
    }

    /// Waits for room for `len` bytes at a position begun; false where the window was closed.
    pub(crate) fn reserve(&self, position: usize, len: u64) -> bool {
        let full = |state: &mut WindowState<T>| {
            !state.closed && position != state.front && state.held_bytes + len > self.window.bounds.bytes_max
        };
        let mut state = self.window.lock();
        state.waiting_for_room += 1;
        state = self.window.room.wait_while(state, full).unwrap_or_else(PoisonError::into_inner);
        state.waiting_for_room -= 1;
        state.held_bytes += len;
        !state.closed
    }

    /// Puts the item of a position begun, which holds the `len` bytes that were reserved for it.
    pub(crate) fn put(&self, position: usize, len: u64, item: T) {
        let mut state = self.window.lock();
        let at = position - state.front;
        state.slots[at] = Some(ReadyItem { item, len });
        drop(state);
        if at == 0 {
            self.window.ready.notify_one();
        }
    }
}

impl<T> Drop for Maker<'_, T> {
    fn drop(&mut self) {
        let mut state = self.window.lock();
        state.makers = state.makers.saturating_sub(1);
        if thread::panicking() {
            // What it had begun never comes, so nobody may wait for it.
            state.closed = true;
            state.makers = 0;
        }
        drop(state);
        self.window.ready.notify_one();
        self.window.positions.notify_all();
        self.window.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn window(count: usize) -> OrderedWindow<usize> {
        OrderedWindow::new(WindowBounds { count, positions_max: 8, bytes_max: 100 })
    }

    #[test]
    fn items_of_many_threads_come_in_order_and_within_the_bounds() {
        let window = window(5000);
        let held_max = AtomicU64::new(0);
        let make = |maker: Maker<'_, usize>| {
            while let Some(position) = maker.begin() {
                // Every eleventh item is larger than the window.
                let len = if position % 11 == 0 { 150 } else { (position % 60) as u64 };
                assert!(maker.reserve(position, len));
                held_max.fetch_max(window.lock().held_bytes, Ordering::Relaxed);
                maker.put(position, len, position);
            }
        };
        let taken = thread::scope(|scope| {
            for maker in (0..12).map(|_| window.maker()).collect::<Vec<_>>() {
                scope.spawn(move || make(maker));
            }
            let mut taken = Vec::new();
            while let Next::Item(item) = window.next(PATIENCE) {
                taken.push(item);
            }
            window.close();
            taken
        });
        assert_eq!(taken, (0..5000).collect::<Vec<_>>());
        assert!(held_max.into_inner() <= 250);
    }

    #[test]
    fn a_closed_window_wakes_all_that_wait_and_ends() {
        let window = window(100);
        thread::scope(|scope| {
            for maker in (0..3).map(|_| window.maker()).collect::<Vec<_>>() {
                scope.spawn(move || {
                    while let Some(position) = maker.begin() {
                        if !maker.reserve(position, 90) {
                            return;
                        }
                        maker.put(position, 90, position);
                    }
                });
            }
            assert_eq!(window.next(PATIENCE), Next::Item(0));
            window.close();
        });
        assert_eq!(window.lock().makers, 0);
    }

    #[test]
    fn one_who_takes_does_not_wait_for_a_thread_that_has_gone() {
        let window = window(3);
        let maker = window.maker();
        assert_eq!(maker.begin(), Some(0));
        assert_eq!(window.next(Duration::ZERO), Next::NotYet);
        drop(maker);
        assert_eq!(window.next(PATIENCE), Next::End);
    }
}
