//! What waits for its turn: a queue for each device, each with its own bound of bytes in flight.
//!
//! A slow device does not hold back another one's reads, and none of them gets more than keeps it busy: what it would
//! have in flight beyond that only waits longer there. Devices take turns where the ring has no room for all.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use crate::job::Job;

/// A job that the kernel does, or is to do.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) job: Job,
    /// The source's open file; the job keeps it open.
    pub(super) fd: RawFd,
    /// The number of its queue.
    pub(super) queue: usize,
}

/// The queues of all devices.
#[derive(Debug)]
pub(super) struct Queues {
    queues: Vec<Queue>,
    in_flight_len_max: u64,
    waiting_count: usize,
    /// The queue whose turn it was.
    turn: usize,
}

#[derive(Debug)]
struct Queue {
    device: Option<u64>,
    waiting: VecDeque<(Flight, u64)>,
    in_flight_len: u64,
    in_flight_count: usize,
}

impl Queues {
    pub(super) fn new(in_flight_len_max: u64) -> Self {
        Self { queues: Vec::new(), in_flight_len_max, waiting_count: 0, turn: 0 }
    }

    /// The number of a device's queue.
    pub(super) fn of(&mut self, device: Option<u64>) -> usize {
        if let Some(number) = self.queues.iter().position(|queue| queue.device == device) {
            return number;
        }
        self.queues.push(Queue { device, waiting: VecDeque::new(), in_flight_len: 0, in_flight_count: 0 });
        self.queues.len() - 1
    }

    /// Puts a flight that will read so many bytes at the end of its queue.
    pub(super) fn push(&mut self, flight: Flight, len: u64) {
        self.waiting_count += 1;
        self.queues[flight.queue].waiting.push_back((flight, len));
    }

    /// Puts a flight that has begun before at the start of its queue.
    pub(super) fn push_first(&mut self, flight: Flight, len: u64) {
        self.waiting_count += 1;
        self.queues[flight.queue].waiting.push_front((flight, len));
    }

    /// The next queue, in turn, whose device has room for its first flight.
    pub(super) fn next(&self) -> Option<usize> {
        let count = self.queues.len();
        let mut turns = (1..=count).map(|step| (self.turn + step) % count);
        turns.find(|&queue| self.queues[queue].may_start(self.in_flight_len_max))
    }

    /// The first flight of a queue, and its length. It counts as in flight from now on.
    pub(super) fn pop(&mut self, queue: usize) -> Option<(Flight, u64)> {
        let Queue { waiting, in_flight_len, in_flight_count, .. } = &mut self.queues[queue];
        let (flight, len) = waiting.pop_front()?;
        *in_flight_len += len;
        *in_flight_count += 1;
        self.waiting_count -= 1;
        self.turn = queue;
        Some((flight, len))
    }

    /// Counts so many bytes of a queue as answered.
    pub(super) fn landed(&mut self, queue: usize, len: u64) {
        let queue = &mut self.queues[queue];
        queue.in_flight_len -= len;
        queue.in_flight_count -= 1;
    }

    pub(super) fn waiting_count(&self) -> usize {
        self.waiting_count
    }
}

impl Queue {
    fn may_start(&self, in_flight_len_max: u64) -> bool {
        let fits = |len: u64| self.in_flight_count == 0 || self.in_flight_len + len <= in_flight_len_max;
        self.waiting.front().is_some_and(|(_, len)| fits(*len))
    }
}
