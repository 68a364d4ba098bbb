//! The engine for mapped files: it lends their bytes.
//!
//! A request is completed when it is submitted, without a copy and without waiting. The system then starts to read
//! pages of larger requests that are not in memory, so a caller that submits ahead of its need finds them there.

use super::in_flight::InFlightRead;
use super::read_now::finish_now;
use super::{Completion, Engine, EngineError, EngineStats, ReadRequest, Wait};

/// Lends bytes of mapped files. It reads any other file at once, in the caller's thread.
#[derive(Debug, Default)]
pub struct MappedEngine {
    ready: Vec<Completion>,
    stats: EngineStats,
}

impl MappedEngine {
    /// Makes an engine. It has no threads and no memory of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Engine for MappedEngine {
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError> {
        let stats = &mut self.stats;
        stats.request_count += 1;
        let begun = InFlightRead::begin(request).inspect_err(|lent| stats.read_bytes += delivered_len(lent));
        let completion = finish_now(begun, |read_len| stats.read_bytes += read_len as u64);
        stats.wanted_bytes += delivered_len(&completion);
        self.ready.push(completion);
        Ok(())
    }

    fn complete(&mut self, _wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        out.append(&mut self.ready);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.ready.len()
    }

    fn stats(&self) -> EngineStats {
        self.stats
    }

    fn name(&self) -> &'static str {
        "mapped"
    }
}

fn delivered_len(completion: &Completion) -> u64 {
    completion.result.as_ref().map_or(0, |filled| filled.bytes().len() as u64)
}
