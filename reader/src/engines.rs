//! Which engine reads, and the engines that wait for their next call.
//!
//! An engine serves one caller at a time: whoever waits for a completion would otherwise hold the lock that another
//! needs to submit. So a call takes an idle engine or starts one and gives it back, an epoch has its own, and no
//! two threads that share a reader wait for each other. A single read takes an engine of one thread, so that many
//! threads that call `get` do not each start sixteen.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use crate::ReadError;
use crate::engine::{Engine, EngineError, PreadEngine};

/// Idle engines kept of either width.
const IDLE_MAX: usize = 16;

/// How many reads a call does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// One.
    Single,
    /// As many as the reader has threads.
    Wide,
}

/// Starts engines and keeps idle ones.
pub(crate) struct Engines {
    threads: NonZeroUsize,
    single: Idle,
    wide: Idle,
}

type Idle = Mutex<Vec<Box<dyn Engine>>>;

impl Engines {
    pub(crate) fn new(threads: NonZeroUsize) -> Self {
        Self { threads, single: Idle::default(), wide: Idle::default() }
    }

    /// An engine for one owner.
    pub(crate) fn start(&self, width: Width) -> Result<Box<dyn Engine>, EngineError> {
        let threads = match width {
            Width::Single => NonZeroUsize::MIN,
            Width::Wide => self.threads,
        };
        Ok(Box::new(PreadEngine::new(threads)?))
    }

    /// Lends an engine to `work`. One that comes back with reads in flight, or not at all, is not lent again.
    pub(crate) fn lend<T>(
        &self,
        width: Width,
        work: impl FnOnce(&mut dyn Engine) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let idle = self.idle(width).lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut engine = match idle {
            Some(engine) => engine,
            None => self.start(width)?,
        };
        let result = work(engine.as_mut());
        if engine.in_flight() == 0 && !matches!(result, Err(ReadError::Engine(_))) {
            let mut idle = self.idle(width).lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_MAX {
                idle.push(engine);
            }
        }
        result
    }

    fn idle(&self, width: Width) -> &Idle {
        match width {
            Width::Single => &self.single,
            Width::Wide => &self.wide,
        }
    }
}
