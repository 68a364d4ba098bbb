//! Where the system is not Linux, a fault of a mapped file ends the process.

/// As the one for Linux, without a handler.
#[derive(Debug)]
pub(super) struct MapGuard;

impl MapGuard {
    pub(super) fn new(_bytes: &[u8]) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the one for Linux needs it")]
    pub(super) fn watch(&self) {}
}
