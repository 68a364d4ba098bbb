//! Waits for reads: no longer than their timeout, and not after the caller has gone.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grainstore_format::shown_path;

use crate::ReadError;
use crate::engine::{Completion, Engine, EngineError, Wait};

/// How often a wait checks whether the reads are still needed.
const SLICE: Duration = Duration::from_millis(100);

/// A wait of this length is reported as slow: a healthy device or network answers in a fraction of it.
const SLOW: Duration = Duration::from_secs(2);

/// How long to wait for reads.
#[derive(Clone, Debug)]
pub(crate) struct ReadTimeout {
    longest: Duration,
    /// Set when the reads are no longer needed.
    stopped: Option<Arc<AtomicBool>>,
}

impl ReadTimeout {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, stopped: None }
    }

    /// The same timeout for waits that also end once `stopped` is set.
    pub(crate) fn until(self, stopped: Arc<AtomicBool>) -> Self {
        Self { stopped: Some(stopped), ..self }
    }

    /// Waits until `count` reads have been completed; after a tenth of a second, any completed read is enough. `shown`
    /// returns the file and the bytes that are needed, for the error.
    pub(crate) fn wait(
        &self,
        engine: &mut dyn Engine,
        count: usize,
        out: &mut Vec<Completion>,
        shown: impl Fn() -> (PathBuf, Range<u64>),
    ) -> Result<(), ReadError> {
        let begin = Instant::now();
        let mut is_slow = false;
        loop {
            let left = self.longest.saturating_sub(begin.elapsed());
            engine.complete(Wait::Within { count, timeout: left.min(SLICE) }, out)?;
            if !out.is_empty() {
                if is_slow {
                    tracing::info!("reads that were slow have come after {:?}", begin.elapsed());
                }
                return Ok(());
            }
            if self.stopped.as_ref().is_some_and(|stopped| stopped.load(Ordering::Acquire)) {
                return Err(EngineError::Stopped { engine: engine.name(), in_flight: engine.in_flight() }.into());
            }
            if !is_slow && begin.elapsed() >= SLOW {
                is_slow = true;
                let (path, range) = shown();
                let Range { start, end } = range;
                tracing::warn!("{}: bytes {start}..{end} have not come for {SLOW:?}", shown_path(&path));
            }
            if begin.elapsed() >= self.longest {
                let (path, range) = shown();
                return Err(ReadError::Stalled { path, range, timeout: self.longest });
            }
        }
    }
}
