//! The engine that runs everywhere: a pool of threads, each of which takes a request, reads it with
//! `pread` until it is complete, and returns it.
//!
//! Requests start in the order submitted and end in any order; the queue depth on the device is the number of threads.
//! A small read of bytes in the page cache is performed at once by the thread that submits it, because waking another
//! thread would take longer.

use std::collections::VecDeque;
use std::mem;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use super::in_flight::{AfterRead, InFlightRead};
use super::{Completion, DRAIN_MAX, Engine, EngineError, EngineStats, FileError, ReadRequest, Wait};
use grainstore_host::ProcessId;

const NAME: &str = "pread";

/// The longest read that the submitting thread may perform itself: about what is copied in the time that another thread
/// takes to wake up. Longer ones are faster when several threads copy at a time.
const AT_ONCE_LEN_MAX: usize = 64 << 10;

/// Reads with a fixed number of threads.
#[derive(Debug)]
pub struct PreadEngine {
    /// `None` only while dropping.
    threads: Option<ReadThreads>,
    /// Completed without a read.
    ready: VecDeque<Completion>,
    in_flight: usize,
    home: ProcessId,
    counters: Arc<Counters>,
}

/// The reading threads, and the channels to and from them.
#[derive(Debug)]
struct ReadThreads {
    submissions: Sender<InFlightRead>,
    /// The threads' end of the queue, so that dropping can empty it.
    queued: Receiver<InFlightRead>,
    done: Receiver<Completion>,
    handles: Vec<JoinHandle<()>>,
}

/// Counters. The threads update them before they return a request, so its owner sees it counted.
#[derive(Debug, Default)]
struct Counters {
    request_count: AtomicU64,
    wanted_bytes: AtomicU64,
    read_bytes: AtomicU64,
}

impl PreadEngine {
    /// Starts the threads, or as many of them as the system allows.
    ///
    /// # Errors
    /// If the system refuses the first thread.
    pub fn new(threads: NonZeroUsize) -> Result<Self, EngineError> {
        let counters = Arc::default();
        let threads = Some(ReadThreads::start(threads, &counters)?);
        Ok(Self { threads, ready: VecDeque::new(), in_flight: 0, home: ProcessId::current(), counters })
    }

    /// The threads; an error in a forked process, which does not have them.
    fn threads(&self) -> Result<&ReadThreads, EngineError> {
        EngineError::check_home(self.home, NAME)?;
        self.threads.as_ref().ok_or_else(|| self.stopped())
    }

    /// Takes completions, and waits for as many as `wait` specifies.
    fn take_done(&self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let done = &self.threads()?.done;
        let wanted = out.len() + wait.count(self.in_flight).saturating_sub(self.ready.len());
        let deadline = match wait {
            Wait::Within { timeout, .. } => Instant::now().checked_add(timeout),
            Wait::None | Wait::One | Wait::Many(_) => None,
        };
        out.extend(done.try_iter());
        while out.len() < wanted {
            // If all threads have ended, this returns an error instead of waiting forever.
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
        let threads = self.threads()?;
        add(&self.counters.request_count, 1);
        match self.counters.begin(request) {
            Ok(job) => threads.submissions.send(job).map_err(|_| self.stopped())?,
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
    /// Drops the queued requests and waits for the reads that have begun.
    fn drop(&mut self) {
        let Some(threads) = self.threads.take() else { return };
        if self.home.is_current() {
            threads.stop();
        } else {
            // A forked process does not have the threads, and the state of the channels is not certain there.
            mem::forget(threads);
        }
    }
}

impl ReadThreads {
    fn start(threads: NonZeroUsize, counters: &Arc<Counters>) -> Result<Self, EngineError> {
        let (submissions, queued) = unbounded();
        let (done_sender, done) = unbounded();
        let mut pool = Self { submissions, queued, done, handles: Vec::new() };
        for number in 0..threads.get() {
            let worker =
                Worker { queued: pool.queued.clone(), done: done_sender.clone(), counters: Arc::clone(counters) };
            let thread = Builder::new().name(format!("grain-pread-{number}")).spawn(move || worker.run());
            match thread {
                Ok(thread) => pool.handles.push(thread),
                // Fewer threads work as well.
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

    /// Stops the threads. One that waits for a device that does not answer keeps its request, and ends later.
    fn stop(self) {
        let Self { submissions, queued, done, handles } = self;
        drop(submissions);
        queued.try_iter().for_each(drop);
        let deadline = Instant::now() + DRAIN_MAX;
        // Without a sender the threads end, and the last of them disconnects this channel.
        while let Ok(completion) = done.recv_deadline(deadline) {
            drop(completion);
        }
        if Instant::now() < deadline {
            // The panic hook has reported a panic; there is no caller to return it to.
            for thread in handles {
                drop(thread.join());
            }
        }
    }
}

/// The state of one reading thread.
struct Worker {
    queued: Receiver<InFlightRead>,
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

    fn serve(&self, mut job: InFlightRead) -> Completion {
        let count = |read_len| self.counters.count_read(read_len);
        // A panic must not lose the request, which would never be completed. The buffer is only borrowed, so it
        // remains valid, and its bytes are arbitrary after a failure.
        let result = catch_unwind(AssertUnwindSafe(|| job.read_rest(count))).unwrap_or_else(|_| Err(job.panicked()));
        self.counters.finish(job, result)
    }
}

impl Counters {
    /// Begins a request, and completes it if that needs no device.
    fn begin(&self, request: ReadRequest) -> Result<InFlightRead, Completion> {
        let mut job = InFlightRead::begin(request).inspect_err(|done| self.count_lent(done))?;
        if job.request().len > AT_ONCE_LEN_MAX {
            return Ok(job);
        }
        match job.read_cached(|read_len| self.count_read(read_len)) {
            AfterRead::ReadMore => Ok(job),
            AfterRead::Done(result) => Err(self.finish(job, result)),
        }
    }

    fn finish(&self, job: InFlightRead, result: Result<(), FileError>) -> Completion {
        if result.is_ok() {
            add(&self.wanted_bytes, job.request().len as u64);
        }
        job.finish(result)
    }

    /// Counts a completion that needed no read.
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
