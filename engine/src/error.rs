//! What can go wrong below the waist: with one read, or with the engine as a whole.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use grainstore_format::shown_path;

/// Why a file or bytes of it could not be read. The cause is the error's source, not in its text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be opened, or its length is not to be had.
    #[error("{}: cannot open the file", shown_path(path))]
    Open {
        /// The file.
        path: Arc<Path>,
        /// What the system said.
        source: io::Error,
    },
    /// The file cannot be mapped: its file system, or the process's limit of memory, does not allow it.
    #[error("{}: cannot map the file into memory; it can be read with io direct or buffered", shown_path(path))]
    Map {
        /// The file.
        path: Arc<Path>,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a read.
    #[error("{}: cannot read bytes {}..{}, failed at {failed_at}", shown_path(path), range.start, range.end)]
    Io {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
        /// Where the read that failed began; in a direct source it may begin before the range.
        failed_at: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file is shorter than what was wanted of it.
    #[error("{}: file ends at {file_len}, wanted bytes {}..{}", shown_path(path), range.start, range.end)]
    EndOfFile {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
        /// Where the file ends.
        file_len: u64,
    },
    /// The request's buffer does not hold what has to be read: a mistake of the caller.
    #[error("{}: bytes {}..{} need a buffer of {needed} bytes, it holds {capacity}", shown_path(path), range.start, range.end)]
    BufferTooSmall {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
        /// Bytes that the buffer has to hold.
        needed: usize,
        /// Bytes that it holds.
        capacity: usize,
    },
    /// The code that reads panicked: a mistake of ours.
    #[error("{}: reading bytes {}..{} panicked", shown_path(path), range.start, range.end)]
    Panicked {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
    },
}

impl FileError {
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

    /// Where in the file the bytes begin that were wanted; none where it could not be opened.
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

/// Why an engine cannot work, whatever the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// It could not be started.
    #[error("cannot start the {engine} engine")]
    Start {
        /// Its name.
        engine: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It has stopped, and what is in flight will never be completed.
    #[error("the {engine} engine has stopped with {in_flight} reads in flight")]
    Stopped {
        /// Its name.
        engine: &'static str,
        /// Requests that are lost.
        in_flight: usize,
    },
    /// The system has refused what it cannot go on without.
    #[error("the {engine} engine cannot go on")]
    Broken {
        /// Its name.
        engine: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It was made by the process that this one was forked from: its threads and rings stayed there.
    #[error("the {engine} engine belongs to the process that this one was forked from")]
    Forked {
        /// Its name.
        engine: &'static str,
    },
    /// The system does not allow it at all.
    #[error("{why}")]
    Refused {
        /// A sentence without a capital and a full stop.
        why: String,
    },
}

impl EngineError {
    /// Refuses to work in a process that was forked from the one that made the engine.
    pub(crate) fn check_home(home: grainstore_host::Home, engine: &'static str) -> Result<(), Self> {
        if home.is_here() { Ok(()) } else { Err(Self::Forked { engine }) }
    }
}
