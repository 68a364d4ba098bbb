//! What stands in for the engine where there is no io_uring.

use super::UringOptions;
use crate::{Completion, Engine, EngineError, EngineStats, ReadRequest, Wait};

/// Reads through io_uring, which is not to be had here.
#[derive(Debug)]
pub enum UringEngine {}

impl UringEngine {
    /// Says that there is none.
    ///
    /// # Errors
    /// Always.
    pub fn new(_options: UringOptions) -> Result<Self, EngineError> {
        Err(EngineError::Refused { why: "io_uring is a part of Linux alone".into() })
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
