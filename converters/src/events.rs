//! Progress of a conversion for its caller, and a way to stop it.

use grainstore_sources::Source;

/// Receives the progress of a conversion, and can stop it. Called on the caller's own thread.
pub trait Events {
    /// The source is scanned before it is packed; this many of its bytes were scanned.
    fn on_scan(&self, _progress: Progress) {}

    /// A sample was taken or skipped, or a part of a long one was read.
    fn on_progress(&self, _progress: Progress) {}

    /// All samples were taken; indexes are written and everything is synced. This can no longer be stopped.
    fn on_finish(&self) {}

    /// Whether to stop. Called for every sample, and several times a second while waiting for one.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores all progress and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvents;

impl Events for NoEvents {}

/// How far a conversion is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Samples taken or skipped.
    pub samples: u64,
    /// How many there are, where that is known.
    pub samples_total: Option<u64>,
    /// Bytes of payload read.
    pub bytes: u64,
    /// Bytes of the source's files, where that is known: more than their payload, less where they are compressed.
    pub source_bytes: Option<u64>,
}

impl Progress {
    /// The progress at the start; `samples_total` where the number of samples is known.
    pub(crate) fn begin(source: &dyn Source, samples_total: Option<u64>) -> Self {
        let lens = source.description().parts.iter().map(|part| Some(part.len).filter(|&len| len > 0));
        let source_bytes = lens.sum::<Option<u64>>().filter(|&len| len > 0);
        Self { samples: 0, samples_total, bytes: 0, source_bytes }
    }
}
