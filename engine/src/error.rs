//! What can go wrong with one read ([`FileError`]), or with the engine as a whole ([`EngineError`]).

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use grainstore_format::{Remedy, shown_path};

/// Why a file, or bytes of it, could not be read. The cause is the error's `source()`, not part of its text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be opened, or its length is not available.
    #[error("{}: cannot open the file", shown_path(path))]
    Open {
        /// The file.
        path: Arc<Path>,
        /// The system's error.
        source: io::Error,
    },
    /// The file cannot be mapped: its file system, or the process's limit of memory, does not allow it.
    #[error("{}: cannot map the file into memory", shown_path(path))]
    Map {
        /// The file.
        path: Arc<Path>,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused a read.
    #[error("{}: cannot read bytes {}..{}, failed at {failed_at}", shown_path(path), range.start, range.end)]
    Io {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
        /// Where the read that failed began; for a direct file this may be before the range.
        failed_at: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The file ends before the wanted bytes do.
    #[error("{}: file ends at {file_len}, wanted bytes {}..{}", shown_path(path), range.start, range.end)]
    EndOfFile {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
        /// Where the file ends.
        file_len: u64,
    },
    /// The request's buffer is too small for what has to be read: a mistake of the caller.
    #[error("{}: bytes {}..{} need a buffer of {needed} bytes, it holds {capacity}", shown_path(path), range.start, range.end)]
    BufferTooSmall {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
        /// Bytes that have to be read.
        needed: usize,
        /// Bytes that the buffer holds.
        capacity: usize,
    },
    /// The code that reads panicked: an error of grainstore.
    #[error("{}: reading bytes {}..{} panicked", shown_path(path), range.start, range.end)]
    Panicked {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
    },
}

impl FileError {
    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Map { .. } => Some(Remedy::ReadUnmapped),
            Self::EndOfFile { .. } => Some(Remedy::ListDamage),
            _ => None,
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Open { path, .. }
            | Self::Map { path, .. }
            | Self::Io { path, .. }
            | Self::EndOfFile { path, .. }
            | Self::BufferTooSmall { path, .. }
            | Self::Panicked { path, .. } => path,
        }
    }

    /// Offset in the file of the wanted bytes; `None` if the file could not be opened.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Open { .. } | Self::Map { .. } => None,
            Self::Io { range, .. }
            | Self::EndOfFile { range, .. }
            | Self::BufferTooSmall { range, .. }
            | Self::Panicked { range, .. } => Some(range.start),
        }
    }
}

/// Why an engine cannot work, independent of the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine could not be started.
    #[error("cannot start the {engine} engine")]
    Start {
        /// The engine's name.
        engine: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The engine has stopped, and the requests in flight will never be completed.
    #[error("the {engine} engine has stopped with {in_flight} reads in flight")]
    Stopped {
        /// The engine's name.
        engine: &'static str,
        /// Requests that are lost.
        in_flight: usize,
    },
    /// The system has refused a call that the engine cannot continue without.
    #[error("the {engine} engine cannot continue")]
    Broken {
        /// The engine's name.
        engine: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The engine was made by the process that this one was forked from: its threads and rings stayed there.
    #[error("the {engine} engine belongs to the process that this one was forked from")]
    Forked {
        /// The engine's name.
        engine: &'static str,
    },
    /// The system does not allow this engine.
    #[error("{why}")]
    Refused {
        /// The reason: a sentence without a capital and a full stop.
        why: String,
    },
}

impl EngineError {
    /// Refuses to work in a process that was forked from the one that made the engine.
    pub(crate) fn check_home(home: grainstore_host::ProcessId, engine: &'static str) -> Result<(), Self> {
        if home.is_current() { Ok(()) } else { Err(Self::Forked { engine }) }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        matches!(self, Self::Refused { .. }).then_some(Remedy::UseAnyEngine)
    }
}
