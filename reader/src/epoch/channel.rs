//! The channel from the thread that makes batches to the caller: a bounded queue.
//!
//! Thousands of small batches pass each second, so a waiting thread is not woken for each of them: the caller is woken
//! when there is half a megabyte or the maker is about to wait itself, the maker when half the queue is gone.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use grainstore_host::ProcessId;

/// Bytes of batches for which it is worth waking the caller.
const WAKE_LEN: usize = 512 << 10;

/// The queue, shared by both threads.
pub(super) struct Channel<T> {
    queue: Mutex<Queue<T>>,
    filled: Condvar,
    room: Condvar,
    bounds: QueueBounds,
    stopped: Arc<AtomicBool>,
    followed: AtomicBool,
    home: ProcessId,
}

/// The queue is full when it holds an item and has reached a bound, or when it holds more decoded bytes than it may.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueBounds {
    pub(super) count_max: usize,
    pub(super) len_max: usize,
    pub(super) decoded_len_max: u64,
}

/// Bytes of an item.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ItemLen {
    /// All of its memory.
    pub(super) memory: usize,
    /// Bytes of samples that were decoded.
    pub(super) decoded: u64,
}

struct Queue<T> {
    items: VecDeque<(T, ItemLen)>,
    /// Bytes of the items.
    len: usize,
    decoded_len: u64,
    caller_waits: bool,
    maker_waits: bool,
    closed: bool,
}

impl<T> Channel<T> {
    pub(super) fn new(bounds: QueueBounds) -> Self {
        let queue = Queue {
            items: VecDeque::new(),
            len: 0,
            decoded_len: 0,
            caller_waits: false,
            maker_waits: false,
            closed: false,
        };
        Self {
            queue: Mutex::new(queue),
            filled: Condvar::new(),
            room: Condvar::new(),
            bounds,
            stopped: Arc::default(),
            followed: AtomicBool::new(false),
            home: ProcessId::current(),
        }
    }

    /// Whether this is still the process in which the maker runs.
    pub(super) fn is_home(&self) -> bool {
        self.home.is_current()
    }

    /// Waits for an item or the end, for at most `timeout`. Returns whether there is one.
    pub(super) fn is_ready_within(&self, timeout: Duration) -> bool {
        let mut queue = self.lock();
        queue.caller_waits = queue.items.is_empty() && !queue.closed;
        let idle = |queue: &mut Queue<T>| queue.caller_waits && !queue.closed;
        let waited = self.filled.wait_timeout_while(queue, timeout, idle).unwrap_or_else(PoisonError::into_inner);
        let mut queue = waited.0;
        queue.caller_waits = false;
        !queue.items.is_empty() || queue.closed
    }

    /// The next item, and how long it was waited for; `None` when the maker has closed the channel.
    pub(super) fn take(&self) -> (Option<T>, Duration) {
        let mut queue = self.lock();
        let mut waited = Duration::ZERO;
        if queue.items.is_empty() && !queue.closed {
            let begin = Instant::now();
            queue.caller_waits = true;
            let idle = |queue: &mut Queue<T>| queue.caller_waits && !queue.closed;
            queue = self.filled.wait_while(queue, idle).unwrap_or_else(PoisonError::into_inner);
            queue.caller_waits = false;
            waited = begin.elapsed();
        }
        let item = queue.items.pop_front().map(|(item, len)| {
            queue.len -= len.memory;
            queue.decoded_len -= len.decoded;
            item
        });
        if queue.maker_waits && self.is_half_empty(&queue) {
            queue.maker_waits = false;
            self.room.notify_one();
        }
        (item, waited)
    }

    /// Puts an item into the queue, even if it is full: the maker looks first.
    pub(super) fn put(&self, item: T, len: ItemLen) {
        let mut queue = self.lock();
        queue.items.push_back((item, len));
        queue.len += len.memory;
        queue.decoded_len += len.decoded;
        if queue.len >= WAKE_LEN {
            self.wake_caller(&mut queue);
        }
    }

    /// Wakes the caller if there is anything: the maker is about to wait.
    pub(super) fn flush(&self) {
        let mut queue = self.lock();
        if !queue.items.is_empty() {
            self.wake_caller(&mut queue);
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.room_in(&self.lock())
    }

    /// Waits until there is room, or the maker must stop.
    pub(super) fn wait_for_room(&self) {
        let mut queue = self.lock();
        if self.room_in(&queue) || self.is_stopped() {
            return;
        }
        queue.maker_waits = true;
        self.wake_caller(&mut queue);
        let full = |queue: &mut Queue<T>| queue.maker_waits && !self.is_stopped();
        drop(self.room.wait_while(queue, full).unwrap_or_else(PoisonError::into_inner));
    }

    /// Stops the maker.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // With the lock, so that a maker that is about to wait does not miss it.
        drop(self.lock());
        self.room.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Sets whether items of another epoch are wanted after those of this one.
    pub(super) fn set_followed(&self, followed: bool) {
        self.followed.store(followed, Ordering::Release);
    }

    pub(super) fn is_followed(&self) -> bool {
        self.followed.load(Ordering::Acquire)
    }

    /// A flag that is true once the maker must stop, for code that waits for something else.
    pub(super) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
    }

    /// No more items come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    fn wake_caller(&self, queue: &mut Queue<T>) {
        if queue.caller_waits {
            queue.caller_waits = false;
            self.filled.notify_one();
        }
    }

    fn room_in(&self, queue: &Queue<T>) -> bool {
        let fits = queue.items.len() < self.bounds.count_max && queue.len < self.bounds.len_max;
        (fits || queue.items.is_empty()) && queue.decoded_len <= self.bounds.decoded_len_max
    }

    fn is_half_empty(&self, queue: &Queue<T>) -> bool {
        let half = queue.items.len() <= self.bounds.count_max / 2 && queue.len <= self.bounds.len_max / 2;
        (half || queue.items.is_empty()) && queue.decoded_len <= self.bounds.decoded_len_max
    }

    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        // A panic under the lock leaves nothing half done.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn channel(count_max: usize, len_max: usize) -> Channel<u32> {
        Channel::new(QueueBounds { count_max, len_max, decoded_len_max: 1000 })
    }

    fn bytes(memory: usize) -> ItemLen {
        ItemLen { memory, decoded: 0 }
    }

    #[test]
    fn items_come_out_in_the_order_they_went_in_and_then_the_end() {
        let channel = channel(4, 1 << 20);
        thread::scope(|scope| {
            scope.spawn(|| {
                for item in 0..1000 {
                    channel.wait_for_room();
                    channel.put(item, bytes(1000));
                }
                channel.close();
            });
            let items: Vec<u32> = std::iter::from_fn(|| channel.take().0).collect();
            assert!(items.into_iter().eq(0..1000));
        });
    }

    #[test]
    fn it_is_full_by_count_or_by_bytes_but_always_holds_one() {
        let many = channel(3, 100);
        let large = channel(64, 100);
        for item in 0..3 {
            assert!(many.has_room());
            many.put(item, bytes(1));
        }
        assert!(!many.has_room());
        assert!(large.has_room());
        large.put(0, bytes(1000));
        assert!(!large.has_room());
        assert_eq!(large.take().0, Some(0));
        assert!(large.has_room());
    }

    #[test]
    fn it_is_full_by_decoded_bytes_even_with_one_item() {
        let channel = channel(64, 1 << 20);
        channel.put(0, ItemLen { memory: 1, decoded: 1000 });
        assert!(channel.has_room());
        channel.put(1, ItemLen { memory: 1, decoded: 1 });
        assert!(!channel.has_room());
        assert_eq!(channel.take().0, Some(0));
        assert!(channel.has_room());
        channel.put(2, ItemLen { memory: 1, decoded: 5000 });
        assert!(!channel.has_room());
        assert_eq!((channel.take().0, channel.has_room()), (Some(1), false));
        assert_eq!((channel.take().0, channel.has_room()), (Some(2), true));
    }

    #[test]
    fn a_caller_that_waits_for_a_small_item_gets_it_when_the_maker_flushes() {
        let channel = channel(64, 1 << 20);
        thread::scope(|scope| {
            let caller = scope.spawn(|| channel.take().0);
            channel.put(7, bytes(1));
            channel.flush();
            assert_eq!(caller.join().unwrap(), Some(7));
        });
    }

    #[test]
    fn a_caller_with_a_short_timeout_learns_whether_there_is_an_item() {
        let channel = channel(64, 1 << 20);
        assert!(!channel.is_ready_within(Duration::ZERO));
        channel.put(7, bytes(1));
        assert!(channel.is_ready_within(Duration::from_secs(60)));
        assert_eq!(channel.take().0, Some(7));
        channel.close();
        assert!(channel.is_ready_within(Duration::from_secs(60)), "the end is worth a look too");
    }

    #[test]
    fn a_maker_that_waits_for_room_is_woken_by_a_stop() {
        let channel = channel(2, 10);
        channel.put(0, bytes(10));
        channel.put(1, bytes(10));
        thread::scope(|scope| {
            let maker = scope.spawn(|| {
                channel.wait_for_room();
                channel.is_stopped()
            });
            channel.stop();
            assert!(maker.join().unwrap());
        });
    }
}
