//! The engine: moves requests through the device queues and the ring.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use super::UringOptions;
use super::device_queues::{DeviceQueues, DeviceRead};
use super::ring::{CompletedRead, Ring};
use crate::in_flight::{AfterRead, InFlightRead, NextRead};
use crate::{Buffer, Completion, Engine, EngineError, EngineStats, FileError, Filled, ReadRequest, Wait};
use grainstore_host::ProcessId;

pub(super) const NAME: &str = "io_uring";

/// Times in a row that the kernel may refuse a submission while none is in flight.
const REFUSALS_MAX: u32 = 1000;

/// Reads through io_uring.
///
/// Any thread may use it, one at a time; if its options allow it, also while reads are in flight. In a forked process
/// every call returns an error.
pub struct UringEngine {
    ring: Ring,
    queues: DeviceQueues,
    /// Requests whose file has no descriptor.
    without_fd: VecDeque<InFlightRead>,
    /// Completed, and not yet returned.
    ready: VecDeque<Completion>,
    completed: Vec<CompletedRead>,
    in_flight: usize,
    home: ProcessId,
    /// Whether a `submit` since the last `complete` has checked that this is not a forked process. The check is a
    /// system call, which costs as much as a small read.
    is_home_checked: bool,
    stats: EngineStats,
}

impl UringEngine {
    /// Makes a ring.
    ///
    /// # Errors
    /// [`EngineError::Refused`] with the reason, if io_uring is not available.
    pub fn new(options: UringOptions) -> Result<Self, EngineError> {
        Ok(Self {
            ring: Ring::new(options)?,
            queues: DeviceQueues::new(options.in_flight_len_max),
            without_fd: VecDeque::new(),
            ready: VecDeque::new(),
            completed: Vec::new(),
            in_flight: 0,
            home: ProcessId::current(),
            is_home_checked: false,
            stats: EngineStats::default(),
        })
    }

    fn begin(&mut self, read: InFlightRead) {
        let file = &read.request().file;
        match file.fd().map(|fd| fd.as_raw_fd()) {
            Some(fd) => {
                let queue = self.queues.of(file.device());
                let len = read.left_len();
                self.queues.push(DeviceRead { request: read, fd, queue }, len);
            }
            None => self.without_fd.push_back(read),
        }
    }

    /// Makes progress until `wanted` requests are ready, or the deadline has passed.
    fn advance(&mut self, wanted: usize, deadline: Option<Instant>) -> Result<(), EngineError> {
        loop {
            self.fill_ring()?;
            self.read_without_fd(wanted)?;
            let missing = wanted.saturating_sub(self.ready.len());
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            self.enter(self.completions_wanted(missing), left)?;
            self.reap();
            if self.ready.len() >= wanted || left.is_some_and(|left| left.is_zero()) {
                break;
            }
        }
        // What fits now is read while the caller does something else.
        self.fill_ring()?;
        self.submit_queued()
    }

    /// Fills the ring from the queues.
    fn fill_ring(&mut self) -> Result<(), EngineError> {
        while let Some(queue) = self.queues.next() {
            if self.ring.is_full() {
                self.submit_queued()?;
            }
            if self.ring.is_full() {
                break;
            }
            if let Some((read, len)) = self.queues.pop(queue) {
                self.ring.push(read, len);
            }
        }
        Ok(())
    }

    /// How many completions to wait for at once: not all of them if more reads could be submitted meanwhile.
    fn completions_wanted(&self, missing: usize) -> usize {
        let in_ring = self.ring.len();
        let share = if self.queues.waiting_count() > 0 { (in_ring / 4).max(1) } else { in_ring };
        missing.min(share)
    }

    fn submit_queued(&mut self) -> Result<(), EngineError> {
        if self.ring.has_queued() { self.enter(0, None) } else { Ok(()) }
    }

    fn enter(&mut self, wanted: usize, timeout: Option<Duration>) -> Result<(), EngineError> {
        let mut refusal_count = 0;
        while let Err(source) = self.ring.enter(wanted, timeout) {
            refusal_count += 1;
            if source.kind() != std::io::ErrorKind::WouldBlock || refusal_count > REFUSALS_MAX {
                return Err(EngineError::Broken { engine: NAME, source });
            }
            thread::yield_now();
        }
        Ok(())
    }

    /// Takes completions from the ring, and queues reads again that were short.
    fn reap(&mut self) {
        let mut completed = std::mem::take(&mut self.completed);
        self.ring.reap(&mut completed);
        for CompletedRead { mut read, len, result } in completed.drain(..) {
            self.queues.complete(read.queue, len);
            self.stats.read_bytes += *result.as_ref().unwrap_or(&0) as u64;
            match guarded(&mut read.request, |read| read.take_result(result)) {
                AfterRead::ReadMore => {
                    let len = read.request.left_len();
                    self.queues.push_first(read, len);
                }
                AfterRead::Done(result) => self.finish(read.request, result),
            }
        }
        self.completed = completed;
    }

    /// Performs reads of files without a descriptor: as many as are wanted, at least one.
    fn read_without_fd(&mut self, wanted: usize) -> Result<(), EngineError> {
        if !self.without_fd.is_empty() {
            self.submit_queued()?;
        }
        let mut count = wanted.saturating_sub(self.ready.len()).max(1);
        while count > 0
            && let Some(mut read) = self.without_fd.pop_front()
        {
            let read_bytes = &mut self.stats.read_bytes;
            let after = guarded(&mut read, |read| {
                loop {
                    let NextRead { file, offset, bytes } = read.next_read();
                    let result = file.read_at(bytes, offset);
                    *read_bytes += *result.as_ref().unwrap_or(&0) as u64;
                    if let AfterRead::Done(result) = read.take_result(result) {
                        return AfterRead::Done(result);
                    }
                }
            });
            if let AfterRead::Done(result) = after {
                self.finish(read, result);
            }
            count -= 1;
        }
        Ok(())
    }

    fn finish(&mut self, read: InFlightRead, result: Result<(), FileError>) {
        if result.is_ok() {
            self.stats.wanted_bytes += read.request().len as u64;
        }
        self.ready.push_back(read.finish(result));
    }
}

/// Turns a panic into an error: otherwise the request would never be completed.
fn guarded(read: &mut InFlightRead, work: impl FnOnce(&mut InFlightRead) -> AfterRead) -> AfterRead {
    // The buffer is only borrowed, so it remains valid, and its bytes are arbitrary after a failure.
    catch_unwind(AssertUnwindSafe(|| work(read))).unwrap_or_else(|_| AfterRead::Done(Err(read.panicked())))
}

impl Engine for UringEngine {
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError> {
        if !self.is_home_checked {
            EngineError::check_home(self.home, NAME)?;
            self.is_home_checked = true;
        }
        self.stats.request_count += 1;
        if request.len == 0 {
            let result = Ok(Filled::new(request.buffer, 0..0));
            self.ready.push_back(Completion { token: request.token, result });
        } else {
            match InFlightRead::begin(request) {
                Ok(read) => self.begin(read),
                Err(completion) => self.ready.push_back(completion),
            }
        }
        self.in_flight += 1;
        Ok(())
    }

    fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        self.is_home_checked = false;
        EngineError::check_home(self.home, NAME)?;
        if self.in_flight == 0 {
            return Ok(());
        }
        self.ring.claim()?;
        let deadline = match wait {
            Wait::Within { timeout, .. } => Instant::now().checked_add(timeout),
            Wait::None | Wait::One | Wait::Many(_) => None,
        };
        let advanced = self.advance(wait.count(self.in_flight), deadline);
        self.in_flight -= self.ready.len();
        out.extend(self.ready.drain(..));
        advanced
    }

    fn register(&mut self, buffer: &Buffer) {
        // If reads are in flight for another thread, the buffer stays unregistered.
        if self.home.is_current() && self.ring.move_here().is_ok() {
            self.ring.register(buffer);
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn stats(&self) -> EngineStats {
        EngineStats { registered_bytes: self.ring.buffers().len(), ..self.stats }
    }

    fn remarks(&self) -> Vec<String> {
        self.ring.buffers().remark().map(str::to_owned).into_iter().collect()
    }

    fn name(&self) -> &'static str {
        NAME
    }
}

impl fmt::Debug for UringEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UringEngine").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}
