//! Progress reports to the caller of an export, and a way to stop it.

/// Receives the progress of an export and can stop it. Called from all threads of the export.
pub trait Events: Sync {
    /// Samples have been written.
    fn on_progress(&self, _progress: Progress) {}

    /// All samples are written; the files are synced next.
    fn on_finish(&self) {}

    /// Whether to stop. Called many times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

/// How much an export has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Samples written.
    pub samples: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
}

/// Ignores progress and never stops the export.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvents;

impl Events for NoEvents {}
