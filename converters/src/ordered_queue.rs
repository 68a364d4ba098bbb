//! A queue of numbered items: many threads make them in any order, one thread takes them in order.
//!
//! ```text
//! taken | ready  -  ready ready  -   - | not begun
//!       front (taken next)             begun
//! ```
//!
//! A producer begins the next position, reserves room for its bytes, and puts the item. The bytes between front and
//! begun are bounded. The item at the front never waits for room, because all others would wait for it. So the bound
//! may be exceeded by one item.
//!
//! Waking a thread costs more than copying a small item. So nobody is woken while nobody waits, and producers that wait
//! for room are woken when there is room for several items, or for the one at the front.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueBounds {
    /// Number of positions.
    pub(crate) count: usize,
    /// The largest number of positions begun and not taken.
    pub(crate) positions_max: usize,
    /// The largest number of bytes of items begun and not taken; one item may exceed it.
    pub(crate) bytes_max: u64,
}

/// The next item, for the consumer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<T> {
    /// It is ready.
    Item(T),
    /// It was not ready within the time given.
    NotYet,
    /// All were taken, or no thread is left to make more.
    End,
}

pub(crate) struct OrderedQueue<T> {
    bounds: QueueBounds,
    state: Mutex<QueueState<T>>,
    /// For producers that want to begin: a position became free, or the queue was closed.
    positions: Condvar,
    /// For producers that wait for room: bytes became free, or their position is now the front.
    room: Condvar,
    /// For the consumer: the front is ready, or a producer was dropped.
    ready: Condvar,
}

struct QueueState<T> {
    front: usize,
    begun: usize,
    end: usize,
    held_bytes: u64,
    slots: VecDeque<Option<ReadyItem<T>>>,
    producers: usize,
    waiting_for_position: usize,
    waiting_for_room: usize,
    consumer_waits: bool,
    closed: bool,
}

struct ReadyItem<T> {
    item: T,
    len: u64,
}

/// Makes items. When the last producer was dropped, the consumer stops waiting.
pub(crate) struct Producer<'a, T> {
    queue: &'a OrderedQueue<T>,
}

impl<T> OrderedQueue<T> {
    pub(crate) fn new(bounds: QueueBounds) -> Self {
        let state = QueueState {
            front: 0,
            begun: 0,
            end: bounds.count,
            held_bytes: 0,
            slots: VecDeque::new(),
            producers: 0,
            waiting_for_position: 0,
            waiting_for_room: 0,
            consumer_waits: false,
            closed: false,
        };
        let positions = Condvar::new();
        let room = Condvar::new();
        let ready = Condvar::new();
        Self { bounds, state: Mutex::new(state), positions, room, ready }
    }

    pub(crate) fn producer(&self) -> Producer<'_, T> {
        self.lock().producers += 1;
        Producer { queue: self }
    }

    /// The item at the front; waits for it `patience` at most.
    pub(crate) fn next(&self, patience: Duration) -> Next<T> {
        let mut state = self.lock();
        if state.front_is_coming() {
            state.consumer_waits = true;
            let waited = self.ready.wait_timeout_while(state, patience, |state| state.front_is_coming());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.consumer_waits = false;
        }
        let Some(item) = state.take_front() else {
            return if state.front_is_coming() { Next::NotYet } else { Next::End };
        };
        let position_is_wanted = state.waiting_for_position > 0;
        let room_is_wanted = state.waiting_for_room > 0;
        let wake_for_room = room_is_wanted && (state.front_is_empty() || self.has_much_room(&state));
        drop(state);
        if position_is_wanted {
            self.positions.notify_one();
        }
        if wake_for_room {
            self.room.notify_all();
        }
        Next::Item(item)
    }

    /// Wakes all producers; no item can be begun any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.positions.notify_all();
        self.room.notify_all();
    }

    /// Whether a quarter of the bytes is free.
    fn has_much_room(&self, state: &QueueState<T>) -> bool {
        state.held_bytes <= self.bounds.bytes_max - self.bounds.bytes_max / 4
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> QueueState<T> {
    /// Whether the front is empty and another thread may still fill it.
    fn front_is_coming(&self) -> bool {
        self.front < self.end && self.producers > 0 && self.front_is_empty()
    }

    fn front_is_empty(&self) -> bool {
        !matches!(self.slots.front(), Some(Some(_)))
    }

    fn take_front(&mut self) -> Option<T> {
        let ReadyItem { item, len } = self.slots.front_mut()?.take()?;
        self.slots.pop_front();
        self.front += 1;
        self.held_bytes -= len;
        Some(item)
    }
}

impl<T> Producer<'_, T> {
    /// The next position that no producer has begun; `None` where there is none or the queue was closed.
    pub(crate) fn begin(&self) -> Option<usize> {
        let positions_max = self.queue.bounds.positions_max;
        let full = |state: &mut QueueState<T>| {
            !state.closed && state.begun < state.end && state.begun - state.front >= positions_max
        };
        let mut state = self.queue.lock();
        state.waiting_for_position += 1;
        state = self.queue.positions.wait_while(state, full).unwrap_or_else(PoisonError::into_inner);
        state.waiting_for_position -= 1;
        if state.closed || state.begun == state.end {
            return None;
        }
        state.begun += 1;
        state.slots.push_back(None);
        Some(state.begun - 1)
    }

    /// Waits for room for `len` bytes at a position begun; false where the queue was closed.
    pub(crate) fn reserve(&self, position: usize, len: u64) -> bool {
        let full = |state: &mut QueueState<T>| {
            !state.closed && position != state.front && state.held_bytes + len > self.queue.bounds.bytes_max
        };
        let mut state = self.queue.lock();
        state.waiting_for_room += 1;
        state = self.queue.room.wait_while(state, full).unwrap_or_else(PoisonError::into_inner);
        state.waiting_for_room -= 1;
        state.held_bytes += len;
        !state.closed
    }

    /// Puts the item of a position begun, which holds the `len` bytes that were reserved for it.
    pub(crate) fn put(&self, position: usize, len: u64, item: T) {
        let mut state = self.queue.lock();
        let at = position - state.front;
        state.slots[at] = Some(ReadyItem { item, len });
        let consumer_waits = state.consumer_waits;
        drop(state);
        if at == 0 && consumer_waits {
            self.queue.ready.notify_one();
        }
    }
}

impl<T> Drop for Producer<'_, T> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        // Already 0 if another producer has panicked.
        state.producers = state.producers.saturating_sub(1);
        if thread::panicking() {
            // The item that it had begun will never come, so nothing may wait for it.
            state.closed = true;
            state.producers = 0;
        }
        drop(state);
        self.queue.ready.notify_one();
        self.queue.positions.notify_all();
        self.queue.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn queue(count: usize) -> OrderedQueue<usize> {
        OrderedQueue::new(QueueBounds { count, positions_max: 8, bytes_max: 100 })
    }

    #[test]
    fn items_of_many_threads_come_in_order_and_within_the_bounds() {
        let queue = queue(5000);
        let held_max = AtomicU64::new(0);
        let make = |producer: Producer<'_, usize>| {
            while let Some(position) = producer.begin() {
                // Every eleventh item is larger than the queue.
                let len = if position % 11 == 0 { 150 } else { (position % 60) as u64 };
                assert!(producer.reserve(position, len));
                held_max.fetch_max(queue.lock().held_bytes, Ordering::Relaxed);
                producer.put(position, len, position);
            }
        };
        let taken = thread::scope(|scope| {
            for producer in (0..12).map(|_| queue.producer()).collect::<Vec<_>>() {
                scope.spawn(move || make(producer));
            }
            let mut taken = Vec::new();
            while let Next::Item(item) = queue.next(PATIENCE) {
                taken.push(item);
            }
            queue.close();
            taken
        });
        assert_eq!(taken, (0..5000).collect::<Vec<_>>());
        assert!(held_max.into_inner() <= 250);
    }

    #[test]
    fn a_closed_queue_wakes_all_that_wait_and_ends() {
        let queue = queue(100);
        thread::scope(|scope| {
            for producer in (0..3).map(|_| queue.producer()).collect::<Vec<_>>() {
                scope.spawn(move || {
                    while let Some(position) = producer.begin() {
                        if !producer.reserve(position, 90) {
                            return;
                        }
                        producer.put(position, 90, position);
                    }
                });
            }
            assert_eq!(queue.next(PATIENCE), Next::Item(0));
            queue.close();
        });
        assert_eq!(queue.lock().producers, 0);
    }

    #[test]
    fn the_consumer_does_not_wait_for_a_thread_that_has_ended() {
        let queue = queue(3);
        let producer = queue.producer();
        assert_eq!(producer.begin(), Some(0));
        assert_eq!(queue.next(Duration::ZERO), Next::NotYet);
        drop(producer);
        assert_eq!(queue.next(PATIENCE), Next::End);
    }
}
