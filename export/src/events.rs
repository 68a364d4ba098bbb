//! What the caller of an export hears of it, and how it stops it.

/// What the caller of an export hears of it, and how it stops it. Called from all of its threads.
pub trait Events: Sync {
    /// Samples have been written.
    fn on_progress(&self, _progress: Progress) {}

    /// All samples are written; everything is synced now.
    fn on_finish(&self) {}

    /// Whether to stop. Asked many times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

/// How far an export is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Samples written.
    pub samples: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
}

/// Hears nothing and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvents;

impl Events for NoEvents {}
