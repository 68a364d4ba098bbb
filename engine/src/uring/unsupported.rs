//! Replaces the engine on systems without io_uring.

use super::UringOptions;
use crate::{Completion, Engine, EngineError, EngineStats, ReadRequest, Wait};

/// Reads through io_uring, which this system does not have.
#[derive(Debug)]
pub enum UringEngine {}

impl UringEngine {
    /// Returns an error.
    ///
    /// # Errors
    /// Always: there is no io_uring.
    pub fn new(_options: UringOptions) -> Result<Self, EngineError> {
        Err(EngineError::Refused { why: "only Linux has io_uring".into() })
    }
}

impl Engine for UringEngine {
    fn submit(&mut self, _request: ReadRequest) -> Result<(), EngineError> {
        match *self {}
    }

    fn complete(&mut self, _wait: Wait, _out: &mut Vec<Completion>) -> Result<(), EngineError> {
        match *self {}
    }

    fn in_flight(&self) -> usize {
        match *self {}
    }

    fn stats(&self) -> EngineStats {
        match *self {}
    }

    fn name(&self) -> &'static str {
        match *self {}
    }
}
