//! The engine for mapped files: it lends their bytes, and does nothing else.
//!
//! A request is completed when it is submitted, without a copy and without waiting. Pages of larger reads that are not in
//! memory begin to be read then, so who submits ahead of the need finds them there.

use super::inline::finish_now;
use super::job::Job;
use super::{Completion, Engine, EngineError, EngineStats, ReadRequest, Wait};

/// Lends bytes of mapped files. Any other file it reads at once, in the caller's thread.
#[derive(Debug, Default)]
pub struct MappedEngine {
    ready: Vec<Completion>,
    stats: EngineStats,
}

impl MappedEngine {
    /// Makes one. It has neither threads nor memory of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Engine for MappedEngine {
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError> {
        let stats = &mut self.stats;
        stats.request_count += 1;
        let begun = Job::begin(request).inspect_err(|lent| stats.read_bytes += delivered_len(lent));
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
