//! The engine that runs everywhere: a pool of threads, each of which takes a request, reads it with
//! `pread` until it is whole, and hands it back.
//!
//! Requests start in the order submitted and end in any; depth on the device is the number of threads.
//! A short read of what the page cache holds is done at once by the thread that submits it: to hand it over
//! would take longer. Otherwise submitting is the waking of a thread.

use std::collections::VecDeque;
use std::mem;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use super::job::{Job, Step};
use super::{Completion, DRAIN_MAX, Engine, EngineError, EngineStats, FileError, ReadRequest, Wait};
use grainstore_host::Home;

const NAME: &str = "pread";

/// Bytes of a read that the thread that submits it may do itself: about as many as are copied while another wakes up.
/// Longer ones are better copied by several threads at a time.
const AT_ONCE_LEN_MAX: usize = 64 << 10;

/// Reads with a fixed number of threads.
#[derive(Debug)]
pub struct PreadEngine {
    /// `None` only while dropping.
    pool: Option<Pool>,
    /// Completed without a read.
    ready: VecDeque<Completion>,
    in_flight: usize,
    home: Home,
    counters: Arc<Counters>,
}

/// The threads, and the channels to and from them.
#[derive(Debug)]
struct Pool {
    queue: Sender<Job>,
    /// The threads' end of the queue, so that dropping can empty it.
    queued: Receiver<Job>,
    done: Receiver<Completion>,
    threads: Vec<JoinHandle<()>>,
}

/// Written by the threads before they hand a request back, so that who has it sees it counted.
#[derive(Debug, Default)]
struct Counters {
    request_count: AtomicU64,
    wanted_bytes: AtomicU64,
    read_bytes: AtomicU64,
}

impl PreadEngine {
    /// Starts the threads, or as many as the system allows.
    ///
    /// # Errors
    /// Where the system refuses the first thread.
    pub fn new(threads: NonZeroUsize) -> Result<Self, EngineError> {
        let counters = Arc::default();
        let pool = Some(Pool::start(threads, &counters)?);
        Ok(Self { pool, ready: VecDeque::new(), in_flight: 0, home: Home::here(), counters })
    }

    /// The pool, where it still has threads: a forked process has none of them.
    fn pool(&self) -> Result<&Pool, EngineError> {
        EngineError::check_home(self.home, NAME)?;
        self.pool.as_ref().ok_or_else(|| self.stopped())
    }

    /// Takes what is done, and waits for one if there is nothing and `wait` says so.
    fn take_done(&self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let done = &self.pool()?.done;
        let wanted = out.len() + wait.count(self.in_flight).saturating_sub(self.ready.len());
        let deadline = match wait {
            Wait::Within { timeout, .. } => Instant::now().checked_add(timeout),
            Wait::None | Wait::One | Wait::Many(_) => None,
        };
        out.extend(done.try_iter());
        while out.len() < wanted {
            // It ends with an error, not never, should all threads be gone.
            let completion = match deadline {
                Some(deadline) => done.recv_deadline(deadline),
                None => done.recv().map_err(RecvTimeoutError::from),
            };
            match completion {
                Ok(completion) => out.push(completion),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.stopped()),
            }
            out.extend(done.try_iter());
        }
        Ok(())
    }

    fn stopped(&self) -> EngineError {
        EngineError::Stopped { engine: NAME, in_flight: self.in_flight }
    }
}

impl Engine for PreadEngine {
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError> {
        let pool = self.pool()?;
        add(&self.counters.request_count, 1);
        match self.counters.begin(request) {
            Ok(job) => pool.queue.send(job).map_err(|_| self.stopped())?,
            Err(completion) => self.ready.push_back(completion),
        }
        self.in_flight += 1;
        Ok(())
    }

    fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let before = out.len();
        let taken = self.take_done(wait, out);
        out.extend(self.ready.drain(..));
        self.in_flight -= out.len() - before;
        taken
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn stats(&self) -> EngineStats {
        EngineStats {
            request_count: self.counters.request_count.load(Ordering::Relaxed),
            wanted_bytes: self.counters.wanted_bytes.load(Ordering::Relaxed),
            read_bytes: self.counters.read_bytes.load(Ordering::Relaxed),
            registered_bytes: 0,
        }
    }

    fn name(&self) -> &'static str {
        NAME
    }
}

impl Drop for PreadEngine {
    /// Drops what is queued and waits for the reads that have begun.
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        if self.home.is_here() {
            pool.stop();
        } else {
            // A forked process has neither the threads nor, for sure, whole channels to them.
            mem::forget(pool);
        }
    }
}

impl Pool {
    fn start(threads: NonZeroUsize, counters: &Arc<Counters>) -> Result<Self, EngineError> {
        let (queue, queued) = unbounded();
        let (done_sender, done) = unbounded();
        let mut pool = Self { queue, queued, done, threads: Vec::new() };
        for number in 0..threads.get() {
            let worker =
                Worker { queued: pool.queued.clone(), done: done_sender.clone(), counters: Arc::clone(counters) };
            let thread = Builder::new().name(format!("grain-pread-{number}")).spawn(move || worker.run());
            match thread {
                Ok(thread) => pool.threads.push(thread),
                // Fewer do as well.
                Err(_) if number > 0 => break,
                Err(source) => {
                    drop(done_sender);
                    pool.stop();
                    return Err(EngineError::Start { engine: NAME, source });
                }
            }
        }
        Ok(pool)
    }

    /// A thread that the device does not answer keeps its request, and ends when it has.
    fn stop(self) {
        let Self { queue, queued, done, threads } = self;
        drop(queue);
        queued.try_iter().for_each(drop);
        let patience = Instant::now() + DRAIN_MAX;
        // Without a sender the threads end, and with the last of them this channel.
        while let Ok(completion) = done.recv_deadline(patience) {
            drop(completion);
        }
        if Instant::now() < patience {
            // A panic has been told by the panic hook; there is nobody to hand it on to.
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }
}

/// What a thread of the pool has.
struct Worker {
    queued: Receiver<Job>,
    done: Sender<Completion>,
    counters: Arc<Counters>,
}

impl Worker {
    fn run(&self) {
        for job in &self.queued {
            if self.done.send(self.serve(job)).is_err() {
                return;
            }
        }
    }

    fn serve(&self, mut job: Job) -> Completion {
        let count = |read_len| self.counters.count_read(read_len);
        // A panic must not lose the request: nobody would ever complete it. The buffer stays whole,
        // since it is only lent, and its bytes are arbitrary after a failure anyhow.
        let result = catch_unwind(AssertUnwindSafe(|| job.read_rest(count))).unwrap_or_else(|_| Err(job.panicked()));
        self.counters.finish(job, result)
    }
}

impl Counters {
    /// Begins a request, and ends it where that takes no device.
    fn begin(&self, request: ReadRequest) -> Result<Job, Completion> {
        let mut job = Job::begin(request).inspect_err(|done| self.count_lent(done))?;
        if job.request().len > AT_ONCE_LEN_MAX {
            return Ok(job);
        }
        match job.read_cached(|read_len| self.count_read(read_len)) {
            Step::More => Ok(job),
            Step::Done(result) => Err(self.finish(job, result)),
        }
    }

    fn finish(&self, job: Job, result: Result<(), FileError>) -> Completion {
        if result.is_ok() {
            add(&self.wanted_bytes, job.request().len as u64);
        }
        job.finish(result)
    }

    /// Counts a completion that no read was made for.
    fn count_lent(&self, completion: &Completion) {
        let lent_len = completion.result.as_ref().map_or(0, |filled| filled.bytes().len());
        add(&self.wanted_bytes, lent_len as u64);
        self.count_read(lent_len);
    }

    fn count_read(&self, read_len: usize) {
        add(&self.read_bytes, read_len as u64);
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
