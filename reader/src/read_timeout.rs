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
    /// A wait of this length is reported.
    slow: Duration,
    /// Set when the reads are no longer needed.
    stopped: Option<Arc<AtomicBool>>,
}

impl ReadTimeout {
    pub(crate) fn new(longest: Duration) -> Self {
        Self { longest, slow: SLOW, stopped: None }
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
            if !is_slow && begin.elapsed() >= self.slow {
                is_slow = true;
                let (path, range) = shown();
                let Range { start, end } = range;
                tracing::warn!("{}: bytes {start}..{end} have not come for {:?}", shown_path(&path), self.slow);
            }
            if begin.elapsed() >= self.longest {
                let (path, range) = shown();
                return Err(ReadError::Stalled { path, range, timeout: self.longest });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::path::Path;
    use std::sync::Mutex;

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;
    use crate::engine::{Buffer, EngineStats, Failed, FileError, ReadRequest};

    /// An engine whose only read comes at the third look at it, or never.
    struct SlowEngine {
        looks: usize,
        comes: bool,
    }

    impl Engine for SlowEngine {
        fn submit(&mut self, _: ReadRequest) -> Result<(), EngineError> {
            Ok(())
        }

        fn complete(&mut self, _: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
            self.looks += 1;
            if self.comes && self.looks == 3 {
                let source = std::io::Error::other("any answer ends the wait");
                let error = FileError::Open { path: Arc::from(Path::new("d/0.seg")), source };
                let result = Err(Failed { error, buffer: Buffer::with_capacity(1) });
                out.push(Completion { token: 0, result });
            }
            Ok(())
        }

        fn in_flight(&self) -> usize {
            1
        }

        fn stats(&self) -> EngineStats {
            EngineStats::default()
        }

        fn name(&self) -> &'static str {
            "slow"
        }
    }

    /// Collects events as `LEVEL message`.
    #[derive(Clone, Default)]
    struct Events(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Events {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut text = Text(event.metadata().level().to_string());
            event.record(&mut text);
            self.0.lock().unwrap().push(text.0);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    struct Text(String);

    impl Visit for Text {
        fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
            self.0 += &format!(" {value:?}");
        }
    }

    /// The events of a wait by which every read is slow at once, and how it ends.
    fn events_of(longest: Duration, slow: Duration, comes: bool) -> (Vec<String>, Result<(), ReadError>) {
        let timeout = ReadTimeout { slow, ..ReadTimeout::new(longest) };
        let events = Events::default();
        let mut engine = SlowEngine { looks: 0, comes };
        let shown = || (PathBuf::from("d/0.seg"), 7..9);
        let ended =
            tracing::subscriber::with_default(events.clone(), || timeout.wait(&mut engine, 1, &mut Vec::new(), shown));
        let events = events.0.lock().unwrap().clone();
        (events, ended)
    }

    #[test]
    fn a_slow_read_is_reported_once_and_again_when_it_has_come() {
        let (events, ended) = events_of(Duration::MAX, Duration::ZERO, true);
        assert!(ended.is_ok());
        assert_eq!(events.len(), 2, "{events:?}");
        assert_eq!(events[0], "WARN d/0.seg: bytes 7..9 have not come for 0ns");
        assert!(events[1].starts_with("INFO reads that were slow have come after "), "{events:?}");
    }

    #[test]
    fn a_slow_read_that_never_comes_is_reported_before_the_error() {
        let (events, ended) = events_of(Duration::ZERO, Duration::ZERO, false);
        assert!(matches!(ended, Err(ReadError::Stalled { .. })), "{ended:?}");
        assert_eq!(events, ["WARN d/0.seg: bytes 7..9 have not come for 0ns"]);
    }

    #[test]
    fn a_read_that_comes_in_time_is_not_reported() {
        let (events, ended) = events_of(Duration::MAX, Duration::MAX, true);
        assert!(ended.is_ok());
        assert_eq!(events, [""; 0]);
    }
}
