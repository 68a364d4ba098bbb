//! The engine that runs everywhere: a pool of threads, each of which takes a request, reads it with
//! `pread` until it is whole, and hands it back.
//!
//! Requests start in the order submitted and end in any. Submitting takes no system call but the
//! waking of a thread; depth on the device is the number of threads.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::{
    BLOCK_LEN, Completion, Engine, EngineError, EngineStats, Failed, Filled, IoMode, ReadError, ReadRequest, Span,
    Wait, is_refusal,
};

const NAME: &str = "pread";

/// Reads with a fixed number of threads.
#[derive(Debug)]
pub struct PreadEngine {
    /// `None` only while dropping: without a sender the threads end.
    queue: Option<Sender<ReadRequest>>,
    /// The threads' end of the queue, so that dropping can empty it.
    queued: Receiver<ReadRequest>,
    done: Receiver<Completion>,
    /// Completed without a read.
    ready: VecDeque<Completion>,
    in_flight: usize,
    threads: Vec<JoinHandle<()>>,
    counters: Arc<Counters>,
}

/// Written by the threads before they hand a request back, so that who has it sees it counted.
#[derive(Debug, Default)]
struct Counters {
    request_count: AtomicU64,
    wanted_bytes: AtomicU64,
    read_bytes: AtomicU64,
}

impl PreadEngine {
    /// Starts the threads.
    ///
    /// # Errors
    /// Where the system refuses a thread.
    pub fn new(threads: NonZeroUsize) -> Result<Self, EngineError> {
        let (queue, queued) = unbounded();
        let (done_sender, done) = unbounded();
        let mut engine = Self {
            queue: Some(queue),
            queued,
            done,
            ready: VecDeque::new(),
            in_flight: 0,
            threads: Vec::new(),
            counters: Arc::default(),
        };
        for number in 0..threads.get() {
            let worker = Worker {
                queued: engine.queued.clone(),
                done: done_sender.clone(),
                counters: Arc::clone(&engine.counters),
            };
            let thread = Builder::new().name(format!("grain-pread-{number}")).spawn(move || worker.run());
            engine.threads.push(thread.map_err(|source| EngineError::Start { engine: NAME, source })?);
        }
        Ok(engine)
    }

    fn stopped(&self) -> EngineError {
        EngineError::Stopped { engine: NAME, in_flight: self.in_flight }
    }
}

impl Engine for PreadEngine {
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError> {
        add(&self.counters.request_count, 1);
        if request.len == 0 {
            let result = Ok(Filled::new(request.buffer, 0..0));
            self.ready.push_back(Completion { token: request.token, result });
        } else {
            let queue = self.queue.as_ref().ok_or_else(|| self.stopped())?;
            queue.send(request).map_err(|_| self.stopped())?;
        }
        self.in_flight += 1;
        Ok(())
    }

    fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let before = out.len();
        out.extend(self.ready.drain(..));
        out.extend(self.done.try_iter());
        if out.len() == before && wait == Wait::One && self.in_flight > 0 {
            // It ends with an error, not never, should all threads be gone.
            out.push(self.done.recv().map_err(|_| self.stopped())?);
            out.extend(self.done.try_iter());
        }
        self.in_flight -= out.len() - before;
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn stats(&self) -> EngineStats {
        EngineStats {
            request_count: self.counters.request_count.load(Ordering::Relaxed),
            wanted_bytes: self.counters.wanted_bytes.load(Ordering::Relaxed),
            read_bytes: self.counters.read_bytes.load(Ordering::Relaxed),
        }
    }

    fn name(&self) -> &'static str {
        NAME
    }
}

impl Drop for PreadEngine {
    /// Drops what is queued and waits for the reads that have begun.
    fn drop(&mut self) {
        self.queue = None;
        self.queued.try_iter().for_each(drop);
        for thread in self.threads.drain(..) {
            // A panic has been told by the panic hook; there is nobody to hand it on to.
            drop(thread.join());
        }
    }
}

/// What a thread of the pool has.
struct Worker {
    queued: Receiver<ReadRequest>,
    done: Sender<Completion>,
    counters: Arc<Counters>,
}

impl Worker {
    fn run(&self) {
        for request in &self.queued {
            if self.done.send(self.serve(request)).is_err() {
                return;
            }
        }
    }

    fn serve(&self, mut request: ReadRequest) -> Completion {
        let (token, range, path) = (request.token, request.range(), Arc::clone(&request.source.path));
        // A panic must not lose the request: nobody would ever complete it. The buffer stays whole,
        // since it is only lent, and its bytes are arbitrary after a failure anyhow.
        let result = catch_unwind(AssertUnwindSafe(|| self.read(&mut request)))
            .unwrap_or(Err(ReadError::Panicked { path, range }));
        let buffer = request.buffer;
        let result = match result {
            Ok(wanted) => Ok(Filled::new(buffer, wanted)),
            Err(error) => Err(Failed { error, buffer }),
        };
        Completion { token, result }
    }

    /// Fills the request's buffer and says where the wanted bytes lie.
    fn read(&self, request: &mut ReadRequest) -> Result<Range<usize>, ReadError> {
        let span = request.span()?;
        let mut progress = Progress { filled: 0, mode: span.mode };
        while progress.filled < span.wanted.end {
            self.step(request, &span, &mut progress)?;
        }
        add(&self.counters.wanted_bytes, request.len as u64);
        Ok(span.wanted)
    }

    /// One `pread`, and what follows from its result.
    fn step(&self, request: &mut ReadRequest, span: &Span, progress: &mut Progress) -> Result<(), ReadError> {
        let from = span.offset + progress.filled as u64;
        let range = request.range();
        let source = &request.source;
        let failed =
            |error| ReadError::Io { path: source.path.clone(), range: range.clone(), failed_at: from, source: error };
        match source.read_at(&mut request.buffer.as_mut_slice()[progress.filled..span.len], from) {
            Ok(0) => Err(source.end_of_file(range, source.end_seen_at(from))),
            Ok(read_len) => {
                add(&self.counters.read_bytes, read_len as u64);
                if progress.advance(read_len, span) {
                    return Ok(());
                }
                let end = source.end_seen_at(range.end);
                if end < range.end {
                    return Err(source.end_of_file(range, end));
                }
                progress.mode = IoMode::Buffered;
                source.fall_back().map_err(failed)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) if progress.mode == IoMode::Direct && is_refusal(&error) => {
                progress.mode = IoMode::Buffered;
                source.fall_back().map_err(failed)
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// How far a request is.
struct Progress {
    /// Bytes of the span, from its start, that are in the buffer; whole blocks while direct.
    filled: usize,
    /// How the next read is done. A source that falls back meanwhile does not change it: it takes
    /// direct reads all the same.
    mode: IoMode,
}

impl Progress {
    /// Counts what a read delivered. A direct read that ended inside a block is repeated from that
    /// block on; `false` where this would repeat the same read for ever.
    fn advance(&mut self, read_len: usize, span: &Span) -> bool {
        let reached = self.filled + read_len;
        let next = match self.mode {
            IoMode::Direct if reached < span.wanted.end => reached - reached % BLOCK_LEN,
            _ => reached,
        };
        let advances = next > self.filled;
        self.filled = next;
        advances
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
