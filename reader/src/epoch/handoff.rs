//! Batches on their way from the thread that makes them to the one that asks for them: a bounded queue.
//!
//! Small batches come by the thousand a second, so a waiting thread is not woken for each of them: the caller when there
//! is a good part of a megabyte or the maker is about to wait itself, the maker when half the queue has gone.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use grainstore_host::Home;

/// Bytes of batches that are worth waking the caller for.
const WAKE_LEN: usize = 512 << 10;

/// The queue, shared by both threads.
pub(super) struct Handoff<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    room: Condvar,
    bounds: Bounds,
    stopped: Arc<AtomicBool>,
    followed: AtomicBool,
    home: Home,
}

/// When the queue is full: then it holds two items at least, and either of these.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) count_max: usize,
    pub(super) len_max: usize,
}

struct State<T> {
    items: VecDeque<(T, usize)>,
    /// Bytes of the items.
    len: usize,
    caller_waits: bool,
    maker_waits: bool,
    ended: bool,
}

impl<T> Handoff<T> {
    pub(super) fn new(bounds: Bounds) -> Self {
        let state = State { items: VecDeque::new(), len: 0, caller_waits: false, maker_waits: false, ended: false };
        Self {
            state: Mutex::new(state),
            filled: Condvar::new(),
            room: Condvar::new(),
            bounds,
            stopped: Arc::default(),
            followed: AtomicBool::new(false),
            home: Home::here(),
        }
    }

    /// Whether this is still the process in which the maker runs.
    pub(super) fn is_home(&self) -> bool {
        self.home.is_here()
    }

    /// Waits for an item or the end, but no longer than `timeout`; whether there is one.
    pub(super) fn is_ready_within(&self, timeout: Duration) -> bool {
        let mut state = self.lock();
        state.caller_waits = state.items.is_empty() && !state.ended;
        let idle = |state: &mut State<T>| state.caller_waits && !state.ended;
        let waited = self.filled.wait_timeout_while(state, timeout, idle).unwrap_or_else(PoisonError::into_inner);
        let mut state = waited.0;
        state.caller_waits = false;
        !state.items.is_empty() || state.ended
    }

    /// The next item, and how long it was waited for; `None` when the maker has ended.
    pub(super) fn take(&self) -> (Option<T>, Duration) {
        let mut state = self.lock();
        let mut waited = Duration::ZERO;
        if state.items.is_empty() && !state.ended {
            let begin = Instant::now();
            state.caller_waits = true;
            let idle = |state: &mut State<T>| state.caller_waits && !state.ended;
            state = self.filled.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
            state.caller_waits = false;
            waited = begin.elapsed();
        }
        let item = state.items.pop_front().map(|(item, len)| {
            state.len -= len;
            item
        });
        if state.maker_waits && self.is_half_empty(&state) {
            state.maker_waits = false;
            self.room.notify_one();
        }
        (item, waited)
    }

    /// Puts an item of `len` bytes into the queue, full or not: the maker looks first.
    pub(super) fn put(&self, item: T, len: usize) {
        let mut state = self.lock();
        state.items.push_back((item, len));
        state.len += len;
        if state.len >= WAKE_LEN {
            self.wake_caller(&mut state);
        }
    }

    /// Lets the caller have what there is: the maker is about to wait.
    pub(super) fn flush(&self) {
        let mut state = self.lock();
        if !state.items.is_empty() {
            self.wake_caller(&mut state);
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.room_in(&self.lock())
    }

    /// Waits until there is room, or the maker is to stop.
    pub(super) fn wait_for_room(&self) {
        let mut state = self.lock();
        if self.room_in(&state) || self.is_stopped() {
            return;
        }
        state.maker_waits = true;
        self.wake_caller(&mut state);
        let full = |state: &mut State<T>| state.maker_waits && !self.is_stopped();
        drop(self.room.wait_while(state, full).unwrap_or_else(PoisonError::into_inner));
    }

    /// Tells the maker to stop.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // With the lock, so that a maker on its way to wait does not miss it.
        drop(self.lock());
        self.room.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Says whether items of another epoch are wanted after those of this one.
    pub(super) fn set_followed(&self, followed: bool) {
        self.followed.store(followed, Ordering::Release);
    }

    pub(super) fn is_followed(&self) -> bool {
        self.followed.load(Ordering::Acquire)
    }

    /// True once the maker is to stop; for who waits for something else meanwhile.
    pub(super) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }

    /// Says that no more items come.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.filled.notify_one();
    }

    fn wake_caller(&self, state: &mut State<T>) {
        if state.caller_waits {
            state.caller_waits = false;
            self.filled.notify_one();
        }
    }

    fn room_in(&self, state: &State<T>) -> bool {
        state.items.len() < 2 || (state.items.len() < self.bounds.count_max && state.len < self.bounds.len_max)
    }

    fn is_half_empty(&self, state: &State<T>) -> bool {
        state.items.len() < 2
            || (state.items.len() <= self.bounds.count_max / 2 && state.len <= self.bounds.len_max / 2)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing under the lock leaves it half done, so what a panicking thread left is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn queue(count_max: usize, len_max: usize) -> Handoff<u32> {
        Handoff::new(Bounds { count_max, len_max })
    }

    #[test]
    fn items_come_out_in_the_order_they_went_in_and_then_the_end() {
        let queue = queue(4, 1 << 20);
        thread::scope(|scope| {
            scope.spawn(|| {
                for item in 0..1000 {
                    queue.wait_for_room();
                    queue.put(item, 1000);
                }
                queue.end();
            });
            let items: Vec<u32> = std::iter::from_fn(|| queue.take().0).collect();
            assert!(items.into_iter().eq(0..1000));
        });
    }

    #[test]
    fn it_is_full_by_count_or_by_bytes_but_holds_two_whatever_they_are() {
        let (many, large) = (queue(3, 100), queue(64, 100));
        for item in 0..3 {
            assert!(many.has_room());
            many.put(item, 1);
        }
        assert!(!many.has_room());
        large.put(0, 1000);
        assert!(large.has_room());
        large.put(1, 1000);
        assert!(!large.has_room());
        assert_eq!(large.take().0, Some(0));
        assert!(large.has_room());
    }

    #[test]
    fn a_caller_that_waits_for_a_small_item_gets_it_when_the_maker_flushes() {
        let queue = queue(64, 1 << 20);
        thread::scope(|scope| {
            let caller = scope.spawn(|| queue.take().0);
            queue.put(7, 1);
            queue.flush();
            assert_eq!(caller.join().unwrap(), Some(7));
        });
    }

    #[test]
    fn a_caller_with_little_time_is_told_whether_there_is_an_item() {
        let queue = queue(64, 1 << 20);
        assert!(!queue.is_ready_within(Duration::ZERO));
        queue.put(7, 1);
        assert!(queue.is_ready_within(Duration::from_secs(60)));
        assert_eq!(queue.take().0, Some(7));
        queue.end();
        assert!(queue.is_ready_within(Duration::from_secs(60)), "the end is worth a look too");
    }

    #[test]
    fn a_maker_that_waits_for_room_is_let_go_when_it_is_to_stop() {
        let queue = queue(2, 10);
        queue.put(0, 10);
        queue.put(1, 10);
        thread::scope(|scope| {
            let maker = scope.spawn(|| {
                queue.wait_for_room();
                queue.is_stopped()
            });
            queue.stop();
            assert!(maker.join().unwrap());
        });
    }
}
