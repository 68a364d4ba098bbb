//! What can go wrong while samples are read.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use grainstore_format::memory::NoMemory;
use grainstore_format::{Remedy, escape_bytes, shown_key, shown_names, shown_path};
use grainstore_store::{Collection, Location, PayloadError, StoreError};

use crate::engine::{self, EngineError};
use crate::plan::PlanError;
use crate::state::StateError;

/// Why samples could not be read, or an epoch could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The dataset: a file of it, its index, or a sample that is damaged ([`StoreError::Sample`]).
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bytes of a sample could not be fetched.
    #[error("sample {ordinal}{}: its bytes cannot be read", shown_key(.key.as_deref()))]
    Unreadable {
        /// The sample's ordinal in what the reader reads, one dataset or several.
        ordinal: u64,
        /// Its key, if it has one that can be read.
        key: Option<Vec<u8>>,
        /// Which bytes of which file, and the system's error.
        source: engine::FileError,
    },
    /// The file of a segment could not be opened.
    #[error("the file of a segment cannot be opened")]
    CannotOpen {
        /// Which file, and the system's error.
        source: engine::FileError,
    },
    /// A read has not completed in time.
    #[error("{}: bytes {}..{} have not arrived after {} s", shown_path(path), range.start, range.end, timeout.as_secs_f64())]
    Stalled {
        /// The file.
        path: PathBuf,
        /// The bytes wanted.
        range: Range<u64>,
        /// How long the caller waited.
        timeout: Duration,
    },
    /// The window of the chunked order is smaller than a chunk. order.md: PLN-7.
    #[error("window is {window_len} bytes, expected {chunk_size} or more: the size of a chunk")]
    SmallWindow {
        /// Bytes of the window in the options.
        window_len: u64,
        /// Bytes of a chunk of the dataset.
        chunk_size: u64,
    },
    /// The queue holds nothing.
    #[error("queue is 0 bytes, expected 1 or more: nothing would ever be read")]
    NoQueue,
    /// The timeout is zero.
    #[error("timeout is 0 s, expected more: no read would ever be in time")]
    NoTimeout,
    /// The epoch was begun by the process that this one was forked from.
    #[error("the epoch belongs to the process that this one was forked from: begin one here")]
    Forked,
    /// The engine cannot start, or cannot continue.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The thread of an epoch cannot be started.
    #[error("cannot start the thread of the epoch")]
    Thread {
        /// The system's error.
        source: std::io::Error,
    },
    /// The state to resume from is invalid, or of another epoch.
    #[error(transparent)]
    State(#[from] StateError),
    /// The order of the epoch cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no such field.
    #[error("no field \"{}\" (there are: {})", escape_bytes(.name.as_bytes()), shown_names(.known))]
    NoSuchField {
        /// The name given.
        name: String,
        /// The names of the schema.
        known: Vec<String>,
    },
    /// Our own bookkeeping contradicts itself, or a thread of ours has panicked.
    #[error("internal error: {what}; please report it")]
    Bug {
        /// What is contradicted.
        what: &'static str,
    },
    /// A batch decodes to more bytes than are allowed for its stored length.
    #[error("batch of {sample_count} samples{}: it decodes from {stored_len} bytes to {payload_len}, the limit is {payload_len_max}", shown_position(*.position))]
    LargeBatch {
        /// Samples of the batch.
        sample_count: u64,
        /// The position of the first of them in its epoch; `None` where it belongs to no epoch.
        position: Option<u64>,
        /// Stored bytes of the samples.
        stored_len: u64,
        /// Raw bytes of the samples.
        payload_len: u64,
        /// The most raw bytes that a batch of this stored length may have.
        payload_len_max: u64,
    },
    /// The system has no memory for the request.
    #[error("no memory for {len} bytes at once")]
    NoMemory {
        /// Bytes that were needed in one piece.
        len: u64,
    },
}

impl From<NoMemory> for ReadError {
    fn from(error: NoMemory) -> Self {
        Self::NoMemory { len: error.len }
    }
}

impl ReadError {
    /// A state that our own code cannot reach: a failed assertion where assertions are on, else an error.
    #[cold]
    pub(crate) fn bug(what: &'static str) -> Self {
        debug_assert!(false, "{what}");
        Self::Bug { what }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Store(store) => store.remedy(),
            Self::Engine(engine) => engine.remedy(),
            Self::Plan(plan) => plan.remedy(),
            Self::State(state) => state.remedy(),
            Self::Unreadable { source, .. } | Self::CannotOpen { source } => source.remedy(),
            Self::NoMemory { .. } => Some(Remedy::UseLessMemory),
            Self::LargeBatch { .. } => Some(Remedy::UseSmallerBatch),
            Self::SmallWindow { .. } => Some(Remedy::UseLargerWindow),
            Self::NoQueue => Some(Remedy::UseLargerQueue),
            Self::NoTimeout | Self::Stalled { .. } => Some(Remedy::UseLongerTimeout),
            Self::Thread { .. } | Self::Forked | Self::Bug { .. } | Self::NoSuchField { .. } => None,
        }
    }

    /// The same error, with the position in the epoch where it is about a batch.
    pub(crate) fn at_position(self, first: u64) -> Self {
        match self {
            Self::LargeBatch { sample_count, stored_len, payload_len, payload_len_max, .. } => {
                Self::LargeBatch { sample_count, position: Some(first), stored_len, payload_len, payload_len_max }
            }
            other => other,
        }
    }

    /// A sample whose stored bytes do not match its entry.
    pub(crate) fn damaged(dataset: &Collection, ordinal: u64, location: &Location, error: &PayloadError) -> Self {
        Self::Store(dataset.payload_error(ordinal, location, error))
    }

    /// A sample whose bytes did not arrive.
    pub(crate) fn unreadable(dataset: &Collection, ordinal: u64, source: engine::FileError) -> Self {
        Self::Unreadable { ordinal, key: key_of(dataset, ordinal), source }
    }
}

fn shown_position(position: Option<u64>) -> String {
    position.map_or_else(String::new, |position| format!(" at position {position}"))
}

/// The key, for a message: a key that cannot be read must not hide the error that is being reported.
fn key_of(dataset: &Collection, ordinal: u64) -> Option<Vec<u8>> {
    dataset.key(ordinal).ok().flatten()
}
