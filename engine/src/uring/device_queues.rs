//! Reads that wait to be submitted: a queue for each device, each with its own bound of bytes in flight.
//!
//! A slow device does not delay the reads of another one, and no device gets more than keeps it busy: anything beyond
//! that would only wait longer there. Devices take turns when the ring is full.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use crate::in_flight::InFlightRead;

/// A request and the device queue that it belongs to.
#[derive(Debug)]
pub(super) struct DeviceRead {
    pub(super) request: InFlightRead,
    /// The descriptor of the file; the request keeps it open.
    pub(super) fd: RawFd,
    /// The number of its queue.
    pub(super) queue: usize,
}

/// The queues of all devices.
#[derive(Debug)]
pub(super) struct DeviceQueues {
    queues: Vec<DeviceQueue>,
    in_flight_len_max: u64,
    waiting_count: usize,
    /// The queue that had the last turn.
    turn: usize,
}

#[derive(Debug)]
struct DeviceQueue {
    device: Option<u64>,
    waiting: VecDeque<(DeviceRead, u64)>,
    in_flight_len: u64,
    in_flight_count: usize,
}

impl DeviceQueues {
    pub(super) fn new(in_flight_len_max: u64) -> Self {
        Self { queues: Vec::new(), in_flight_len_max, waiting_count: 0, turn: 0 }
    }

    /// The number of a device's queue.
    pub(super) fn of(&mut self, device: Option<u64>) -> usize {
        if let Some(number) = self.queues.iter().position(|queue| queue.device == device) {
            return number;
        }
        self.queues.push(DeviceQueue { device, waiting: VecDeque::new(), in_flight_len: 0, in_flight_count: 0 });
        self.queues.len() - 1
    }

    /// Puts a read of `len` bytes at the end of its queue.
    pub(super) fn push(&mut self, read: DeviceRead, len: u64) {
        self.waiting_count += 1;
        self.queues[read.queue].waiting.push_back((read, len));
    }

    /// Puts a read that was short back at the start of its queue.
    pub(super) fn push_first(&mut self, read: DeviceRead, len: u64) {
        self.waiting_count += 1;
        self.queues[read.queue].waiting.push_front((read, len));
    }

    /// The next queue, in turn, whose device has room for its first read.
    pub(super) fn next(&self) -> Option<usize> {
        let count = self.queues.len();
        let mut turns = (1..=count).map(|step| (self.turn + step) % count);
        turns.find(|&queue| self.queues[queue].may_start(self.in_flight_len_max))
    }

    /// The first read of a queue, and its length. It counts as in flight from now on.
    pub(super) fn pop(&mut self, queue: usize) -> Option<(DeviceRead, u64)> {
        let DeviceQueue { waiting, in_flight_len, in_flight_count, .. } = &mut self.queues[queue];
        let (read, len) = waiting.pop_front()?;
        *in_flight_len += len;
        *in_flight_count += 1;
        self.waiting_count -= 1;
        self.turn = queue;
        Some((read, len))
    }

    /// Counts a read of `len` bytes as completed.
    pub(super) fn complete(&mut self, queue: usize, len: u64) {
        let queue = &mut self.queues[queue];
        queue.in_flight_len -= len;
        queue.in_flight_count -= 1;
    }

    pub(super) fn waiting_count(&self) -> usize {
        self.waiting_count
    }
}

impl DeviceQueue {
    fn may_start(&self, in_flight_len_max: u64) -> bool {
        let fits = |len: u64| self.in_flight_count == 0 || self.in_flight_len + len <= in_flight_len_max;
        self.waiting.front().is_some_and(|(_, len)| fits(*len))
    }
}
