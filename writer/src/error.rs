//! What can go wrong while a dataset is written.

use std::io;
use std::path::PathBuf;

use grainstore_format::{FormatError, Remedy, escape_bytes, shown_path};

/// Why a dataset could not be written. Nothing stands under the final name that was not there before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Something stands under the final name already.
    #[error("{}: already exists", shown_path(path))]
    DestinationExists {
        /// The final name.
        path: PathBuf,
    },
    /// Something stands there that the writer will not replace or remove.
    #[error("{}: not replaced: {why}", shown_path(path))]
    NotReplaceable {
        /// What stands in the way.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Another process writes the same dataset.
    #[error("{}: another process is writing it", shown_path(path))]
    Locked {
        /// The directory that it holds.
        path: PathBuf,
    },
    /// What an interrupted writer left was made of something else, or otherwise; it stays as it is.
    #[error("{}: cannot be resumed: {what}", shown_path(path))]
    ResumeMismatch {
        /// The directory that it left.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// Samples cannot be added to what stands there.
    #[error("{}: nothing can be added to it: {why}", shown_path(path))]
    NotExtendable {
        /// What stands there.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The disk refused.
    #[error("{}: cannot {operation}: {source}", shown_path(path))]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Two samples have the same key.
    #[error("duplicate key \"{}\": samples {first} and {second} both have it", escape_bytes(key))]
    DuplicateKey {
        /// The key.
        key: Vec<u8>,
        /// Ordinal of the first.
        first: u64,
        /// Ordinal of the second.
        second: u64,
    },
    /// A sample does not agree with the schema or the limits.
    #[error("sample {ordinal} (key \"{}\"): {what}", escape_bytes(key))]
    Sample {
        /// Its ordinal.
        ordinal: u64,
        /// Its key, empty where it has none.
        key: Vec<u8>,
        /// What is wrong.
        what: String,
    },
    /// An external segment is not as it has to be, or what was said of its file.
    #[error("external segment {number}: {what}")]
    External {
        /// The number that it was begun with.
        number: usize,
        /// Found and expected.
        what: String,
    },
    /// An option or a limit of the format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A file of ours that was read back is not what was written.
    #[error("{}: {source}", shown_path(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: FormatError,
    },
    /// There was no sample.
    #[error("no samples were written; a dataset has at least one")]
    Empty,
    /// The threads that checksum and compress could not be started, or failed.
    #[error("worker threads: {0}")]
    Threads(String),
    /// An earlier call failed; the writer refuses to go on.
    #[error("an earlier write failed; the dataset was given up")]
    Failed,
}

impl WriteError {
    /// What the caller can do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::DestinationExists { .. } => Some(Remedy::Overwrite),
            Self::Locked { .. } => Some(Remedy::WaitForOther),
            Self::ResumeMismatch { .. } => Some(Remedy::ResumeAsStarted),
            Self::DuplicateKey { .. } => Some(Remedy::ChooseDuplicate),
            Self::Io { source, .. } if is_disk_full(source) => Some(Remedy::FreeSpace),
            Self::Format(error) => error.remedy(),
            Self::Damaged { source, .. } => source.remedy().or(Some(Remedy::ListDamage)),
            _ => None,
        }
    }

    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }
}

/// Whether the disk is full, or the user's share of it.
fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Why a streamed sample was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The source failed, or had another length than it said. The writer is as it was before the sample.
    #[error(transparent)]
    Source(io::Error),
    /// The writer failed.
    #[error(transparent)]
    Write(#[from] WriteError),
}
