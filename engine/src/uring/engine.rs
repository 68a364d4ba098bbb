//! Requests on their way through queues, ring and jobs; what the engine's trait asks for.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use super::UringOptions;
use super::queues::{Flight, Queues};
use super::ring::{Landed, Ring};
use crate::job::{Job, NextRead, Step};
use crate::{Buffer, Completion, Engine, EngineError, EngineStats, FileError, Filled, ReadRequest, Wait};
use grainstore_host::Home;

pub(super) const NAME: &str = "io_uring";

/// Times in a row that the kernel may refuse to take a read while none is in flight.
const REFUSALS_MAX: u32 = 1000;

/// Reads through io_uring.
///
/// Any thread may use it, one at a time; with reads in flight too, if its options say so. A forked process cannot:
/// there, all that it does is to say so.
pub struct UringEngine {
    ring: Ring,
    queues: Queues,
    /// Jobs whose file has no open file.
    unfiled: VecDeque<Job>,
    /// Completed, and not yet handed out.
    ready: VecDeque<Completion>,
    landed: Vec<Landed>,
    in_flight: usize,
    home: Home,
    /// Whether a request since the last `complete` has found that this is still its process. To ask the system each
    /// time costs what a small read does.
    is_at_home: bool,
    stats: EngineStats,
}

impl UringEngine {
    /// Makes a ring.
    ///
    /// # Errors
    /// [`EngineError::Refused`] where io_uring is not to be had, with the reason.
    pub fn new(options: UringOptions) -> Result<Self, EngineError> {
        Ok(Self {
            ring: Ring::new(options)?,
            queues: Queues::new(options.in_flight_len_max),
            unfiled: VecDeque::new(),
            ready: VecDeque::new(),
            landed: Vec::new(),
            in_flight: 0,
            home: Home::here(),
            is_at_home: false,
            stats: EngineStats::default(),
        })
    }

    fn begin(&mut self, job: Job) {
        let file = &job.request().file;
        match file.fd().map(|fd| fd.as_raw_fd()) {
            Some(fd) => {
                let queue = self.queues.of(file.device());
                let len = job.left_len();
                self.queues.push(Flight { job, fd, queue }, len);
            }
            None => self.unfiled.push_back(job),
        }
    }

    /// Makes progress until `wanted` requests are ready, or the deadline has passed.
    fn advance(&mut self, wanted: usize, deadline: Option<Instant>) -> Result<(), EngineError> {
        loop {
            self.start()?;
            self.read_unfiled(wanted)?;
            let missing = wanted.saturating_sub(self.ready.len());
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            self.enter(self.answers_wanted(missing), left)?;
            self.land();
            if self.ready.len() >= wanted || left.is_some_and(|left| left.is_zero()) {
                break;
            }
        }
        // What found room just now is read while the caller does something else.
        self.start()?;
        self.hand_over()
    }

    /// Fills the ring from the queues.
    fn start(&mut self) -> Result<(), EngineError> {
        while let Some(queue) = self.queues.next() {
            if self.ring.is_full() {
                self.hand_over()?;
            }
            if self.ring.is_full() {
                break;
            }
            if let Some((flight, len)) = self.queues.pop(queue) {
                self.ring.start(flight, len);
            }
        }
        Ok(())
    }

    /// How many answers to wait for at once: some of those that are missing where more could be started meanwhile.
    fn answers_wanted(&self, missing: usize) -> usize {
        let in_ring = self.ring.len();
        let share = if self.queues.waiting_count() > 0 { (in_ring / 4).max(1) } else { in_ring };
        missing.min(share)
    }

    fn hand_over(&mut self) -> Result<(), EngineError> {
        if self.ring.has_queued() { self.enter(0, None) } else { Ok(()) }
    }

    fn enter(&mut self, wanted: usize, patience: Option<Duration>) -> Result<(), EngineError> {
        let mut refusal_count = 0;
        while let Err(source) = self.ring.enter(wanted, patience) {
            refusal_count += 1;
            if source.kind() != std::io::ErrorKind::WouldBlock || refusal_count > REFUSALS_MAX {
                return Err(EngineError::Broken { engine: NAME, source });
            }
            thread::yield_now();
        }
        Ok(())
    }

    /// Takes answers, and begins again what is not whole.
    fn land(&mut self) {
        let mut landed = std::mem::take(&mut self.landed);
        self.ring.land(&mut landed);
        for Landed { mut flight, len, answer } in landed.drain(..) {
            self.queues.landed(flight.queue, len);
            self.stats.read_bytes += *answer.as_ref().unwrap_or(&0) as u64;
            match guarded(&mut flight.job, |job| job.answered(answer)) {
                Step::More => {
                    let len = flight.job.left_len();
                    self.queues.push_first(flight, len);
                }
                Step::Done(result) => self.finish(flight.job, result),
            }
        }
        self.landed = landed;
    }

    /// Reads without the kernel's help, as many as are wanted, or one.
    fn read_unfiled(&mut self, wanted: usize) -> Result<(), EngineError> {
        if !self.unfiled.is_empty() {
            self.hand_over()?;
        }
        let mut count = wanted.saturating_sub(self.ready.len()).max(1);
        while count > 0
            && let Some(mut job) = self.unfiled.pop_front()
        {
            let read_bytes = &mut self.stats.read_bytes;
            let step = guarded(&mut job, |job| {
                loop {
                    let NextRead { file, offset, bytes } = job.next_read();
                    let answer = file.read_at(bytes, offset);
                    *read_bytes += *answer.as_ref().unwrap_or(&0) as u64;
                    if let Step::Done(result) = job.answered(answer) {
                        return Step::Done(result);
                    }
                }
            });
            if let Step::Done(result) = step {
                self.finish(job, result);
            }
            count -= 1;
        }
        Ok(())
    }

    fn finish(&mut self, job: Job, result: Result<(), FileError>) {
        if result.is_ok() {
            self.stats.wanted_bytes += job.request().len as u64;
        }
        self.ready.push_back(job.finish(result));
    }
}

/// A panic must not lose the request: nobody would ever complete it.
fn guarded(job: &mut Job, work: impl FnOnce(&mut Job) -> Step) -> Step {
    // The buffer stays whole, since it is only lent, and its bytes are arbitrary after a failure anyhow.
    catch_unwind(AssertUnwindSafe(|| work(job))).unwrap_or_else(|_| Step::Done(Err(job.panicked())))
}

impl Engine for UringEngine {
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError> {
        if !self.is_at_home {
            EngineError::check_home(self.home, NAME)?;
            self.is_at_home = true;
        }
        self.stats.request_count += 1;
        if request.len == 0 {
            let result = Ok(Filled::new(request.buffer, 0..0));
            self.ready.push_back(Completion { token: request.token, result });
        } else {
            match Job::begin(request) {
                Ok(job) => self.begin(job),
                Err(completion) => self.ready.push_back(completion),
            }
        }
        self.in_flight += 1;
        Ok(())
    }

    fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        self.is_at_home = false;
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
        // Where reads are in flight for another thread, it may stay unknown.
        if self.home.is_here() && self.ring.move_here().is_ok() {
            self.ring.register(buffer);
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn stats(&self) -> EngineStats {
        EngineStats { registered_bytes: self.ring.memory().len(), ..self.stats }
    }

    fn remarks(&self) -> Vec<String> {
        self.ring.memory().remark().map(str::to_owned).into_iter().collect()
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
