//! Waits for reads, but not for ever, and not after the caller is gone.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::ReadError;
use crate::engine::{Completion, Engine, EngineError, Wait};

/// How long a wait may last after nobody needs it any more.
const SLICE: Duration = Duration::from_millis(100);

/// How long reads are waited for.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    timeout: Duration,
    /// Set when nobody needs the reads any more.
    stopped: Option<Arc<AtomicBool>>,
}

impl Patience {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, stopped: None }
    }

    /// The same, until `stopped` is set.
    pub(crate) fn until(self, stopped: Arc<AtomicBool>) -> Self {
        Self { stopped: Some(stopped), ..self }
    }

    /// Waits until `count` reads have been completed; after a while, any completed read is enough. `shown` returns what is
    /// needed, for the error.
    pub(crate) fn wait(
        &self,
        engine: &mut dyn Engine,
        count: usize,
        out: &mut Vec<Completion>,
        shown: impl FnOnce() -> (PathBuf, Range<u64>),
    ) -> Result<(), ReadError> {
        let begin = Instant::now();
        loop {
            let left = self.timeout.saturating_sub(begin.elapsed());
            engine.complete(Wait::Within { count, timeout: left.min(SLICE) }, out)?;
            if !out.is_empty() {
                return Ok(());
            }
            if self.stopped.as_ref().is_some_and(|stopped| stopped.load(Ordering::Acquire)) {
                return Err(EngineError::Stopped { engine: engine.name(), in_flight: engine.in_flight() }.into());
            }
            if begin.elapsed() >= self.timeout {
                let (path, range) = shown();
                return Err(ReadError::Stalled { path, range, timeout: self.timeout });
            }
        }
    }
}
