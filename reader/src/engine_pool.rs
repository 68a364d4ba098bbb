//! The idle engines of a reader, which its calls borrow.
//!
//! An engine serves one caller at a time: a caller that waits for a completion would otherwise hold the lock that
//! another one needs to submit. So a call takes an idle engine, or starts one, and gives it back at its end; an epoch
//! has an engine of its own. No two threads that share a reader wait for each other.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

use crate::ReadError;
use crate::engine::{Engine, EngineError, IoMode, MappedEngine, PreadEngine, UringEngine, UringOptions, UringOwner};
use crate::engine_choice::EngineChoice;
use grainstore_host::{ForkLock, ProcessId};

/// Idle engines kept.
const IDLE_MAX: usize = 16;

/// The options of new engines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineSpec {
    pub(crate) mode: IoMode,
    pub(crate) choice: EngineChoice,
    pub(crate) threads: NonZeroUsize,
    pub(crate) queue_len: u64,
}

/// Starts engines and keeps idle ones.
pub(crate) struct EnginePool {
    spec: EngineSpec,
    idle: ForkLock<Vec<IdleEngine>>,
    /// Why threads read although io_uring was preferred.
    refused: OnceLock<String>,
}

/// An engine, the process that it was started in, since no other can use it, and the thread that used it last.
struct IdleEngine {
    engine: Box<dyn Engine>,
    home: ProcessId,
    thread: ThreadId,
}

impl EnginePool {
    /// Starts no engine yet, unless io_uring was requested: then a refusal is an error at once.
    pub(crate) fn new(spec: EngineSpec) -> Result<Self, EngineError> {
        let engines = Self { spec, idle: ForkLock::default(), refused: OnceLock::new() };
        if spec.choice == EngineChoice::Uring && spec.mode != IoMode::Mapped {
            let engine = engines.start()?;
            engines.keep(engine);
        }
        Ok(engines)
    }

    /// An engine for one owner, and one thread at a time.
    pub(crate) fn start(&self) -> Result<Box<dyn Engine>, EngineError> {
        if self.spec.mode == IoMode::Mapped {
            return Ok(Box::new(MappedEngine::new()));
        }
        let in_flight_len_max = self.spec.queue_len;
        let owner = UringOwner::OneThread;
        let uring = || UringEngine::new(UringOptions { in_flight_len_max, owner, ..UringOptions::default() });
        match self.spec.choice {
            EngineChoice::Uring => Ok(Box::new(uring()?)),
            EngineChoice::Auto if self.refused.get().is_none() => match uring() {
                Ok(engine) => Ok(Box::new(engine)),
                Err(EngineError::Refused { why }) => {
                    self.refuse(why);
                    self.pread()
                }
                // The system lacks descriptors or memory now; a later start may succeed.
                Err(error @ EngineError::Start { .. }) => {
                    tracing::warn!("{error}; reading with {} threads for now", self.spec.threads);
                    self.pread()
                }
                Err(error) => Err(error),
            },
            EngineChoice::Auto | EngineChoice::Pread => self.pread(),
        }
    }

    /// Notes that io_uring is refused, and reports it once.
    fn refuse(&self, why: String) {
        self.refused.get_or_init(|| {
            tracing::warn!("{why}; reading with {} threads instead", self.spec.threads);
            why
        });
    }

    /// A notice for the user, as a sentence.
    pub(crate) fn notice(&self) -> Option<String> {
        let why = self.refused.get()?;
        Some(format!("{why}; reading with {} threads instead", self.spec.threads))
    }

    /// Lends an engine to `work`. An engine that still has reads in flight afterwards, or has failed, is dropped.
    pub(crate) fn lend<T>(&self, work: impl FnOnce(&mut dyn Engine) -> Result<T, ReadError>) -> Result<T, ReadError> {
        let mut engine = match self.take_idle() {
            Some(engine) => engine,
            None => self.start()?,
        };
        let result = work(engine.as_mut());
        if engine.in_flight() == 0 && !matches!(result, Err(ReadError::Engine(_))) {
            self.keep(engine);
        }
        result
    }

    /// Frees the idle engines, where no more calls are expected.
    pub(crate) fn drop_idle(&self) {
        let idle = self.idle.lock().map(|mut idle| std::mem::take(&mut *idle));
        // Outside the lock: an engine ends its threads.
        drop(idle);
    }

    /// Takes the engine that this thread used last. An engine of another thread would have to make a new ring, so it is
    /// taken only if there are no rings, or already too many: then the one that has been idle longest. In a forked
    /// process, the engines of its parent are dropped.
    fn take_idle(&self) -> Option<Box<dyn Engine>> {
        let mut idle = self.idle.lock()?;
        idle.retain(|idle| idle.home.is_current());
        let here = thread::current().id();
        let own = idle.iter().rposition(|idle| idle.thread == here);
        let any = (!idle.is_empty() && (idle.len() == IDLE_MAX || !self.has_rings())).then_some(0);
        Some(idle.remove(own.or(any)?).engine)
    }

    fn has_rings(&self) -> bool {
        let may_have = self.spec.mode != IoMode::Mapped && self.spec.choice != EngineChoice::Pread;
        may_have && self.refused.get().is_none()
    }

    fn keep(&self, engine: Box<dyn Engine>) {
        let Some(mut idle) = self.idle.lock() else { return };
        if idle.len() < IDLE_MAX {
            idle.push(IdleEngine { engine, thread: thread::current().id(), home: ProcessId::current() });
        }
    }

    fn pread(&self) -> Result<Box<dyn Engine>, EngineError> {
        Ok(Box::new(PreadEngine::new(self.spec.threads)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_comes_back_and_is_lent_again() {
        let engines = engines(EngineChoice::Pread);
        let names: Vec<&str> = (0..3).map(|_| engines.lend(|engine| Ok(engine.name())).unwrap()).collect();
        assert_eq!(names, ["pread"; 3]);
        assert_eq!(engines.idle.lock().map(|idle| idle.len()), Some(1));
        assert_eq!(engines.notice(), None);
    }

    #[test]
    fn threads_of_an_engine_serve_every_caller_and_each_caller_has_its_own_ring() {
        for choice in [EngineChoice::Pread, EngineChoice::Auto] {
            let engines = engines(choice);
            let lend = || engines.lend(|engine| Ok(engine.name())).unwrap();
            let name = lend();
            let most = if name == "pread" { 1 } else { IDLE_MAX };
            for count in 2..IDLE_MAX + 3 {
                thread::scope(|scope| scope.spawn(|| (lend(), lend())).join().unwrap());
                assert_eq!(engines.idle.lock().map(|idle| idle.len()), Some(count.min(most)), "{name}");
            }
        }
    }

    fn engines(choice: EngineChoice) -> EnginePool {
        let threads = NonZeroUsize::MIN;
        EnginePool::new(EngineSpec { mode: IoMode::Buffered, choice, threads, queue_len: 1 }).unwrap()
    }
}
