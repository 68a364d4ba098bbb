//! The errors of writing a dataset.

use std::io;
use std::path::PathBuf;

use grainstore_format::{FormatError, Remedy, UrlPath, escape_bytes, shown_path};

/// Why a dataset could not be written. The final name is as it was before, unless only the last step failed, the sync of
/// the containing directory: then the dataset is there, but a crash may still remove it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The final name exists already.
    #[error("{}: already exists", shown_path(path))]
    DestinationExists {
        /// The final name.
        path: PathBuf,
    },
    /// The path holds something that the writer will not replace or remove.
    #[error("{}: not replaced: {why}", shown_path(path))]
    NotReplaceable {
        /// The path that is in the way.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Another process writes the same dataset.
    #[error("{}: another process is writing it", shown_path(path))]
    Locked {
        /// The directory that it has locked.
        path: PathBuf,
    },
    /// An interrupted writer had another source or other options. What it left is not changed.
    #[error("{}: cannot be resumed: {what}", shown_path(path))]
    ResumeMismatch {
        /// The directory that it left.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// Samples cannot be added to this path.
    #[error("{}: nothing can be added to it: {why}", shown_path(path))]
    NotExtendable {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// These samples cannot be removed from this dataset.
    #[error("{}: nothing was deleted from it: {why}", shown_path(path))]
    NotReducible {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: String,
        /// Whether the reason is that they are in a file that grainstore does not own.
        is_external: bool,
    },
    /// A sample that stays when others are removed cannot be read, or is damaged.
    #[error(
        "{}: sample {ordinal} (key \"{}\"), which is to stay, cannot be copied: {why}",
        shown_path(path),
        escape_bytes(key)
    )]
    NotCopied {
        /// The file that holds it.
        path: PathBuf,
        /// Its ordinal.
        ordinal: u64,
        /// Its key, empty if it has none.
        key: Vec<u8>,
        /// What is wrong.
        why: String,
    },
    /// A file operation failed.
    #[error("{}: cannot {operation}: {source}", shown_path(path))]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The destination is a URL.
    #[error(transparent)]
    Url(UrlPath),
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
    /// A sample does not match the schema or exceeds a limit.
    #[error("sample {ordinal} (key \"{}\"): {what}", escape_bytes(key))]
    Sample {
        /// Its ordinal.
        ordinal: u64,
        /// Its key, empty if it has none.
        key: Vec<u8>,
        /// What is wrong.
        what: String,
    },
    /// An external segment, or the description of its file, is invalid.
    #[error("external segment {number}: {what}")]
    External {
        /// The number that it was started with.
        number: usize,
        /// What was found and what was expected.
        what: String,
    },
    /// An option is invalid, or a limit of the format is exceeded.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A file of grainstore is damaged.
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
    /// An earlier call failed; the writer cannot continue.
    #[error("an earlier write failed; the dataset was given up")]
    Failed,
    /// The writer contradicts itself: a mistake in grainstore, not in the data.
    #[error("internal error: {what}; please report it")]
    Bug {
        /// What is contradicted.
        what: &'static str,
    },
}

impl WriteError {
    /// What the caller can do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::DestinationExists { .. } => Some(Remedy::Overwrite),
            Self::Locked { .. } => Some(Remedy::WaitForOther),
            Self::ResumeMismatch { .. } => Some(Remedy::ResumeAsStarted),
            Self::DuplicateKey { .. } => Some(Remedy::ChooseDuplicate),
            Self::NotReducible { is_external: true, .. } => Some(Remedy::Convert),
            Self::NotCopied { .. } => Some(Remedy::ListDamage),
            Self::Io { source, .. } if is_disk_full(source) => Some(Remedy::FreeSpace),
            Self::Format(error) => error.remedy(),
            Self::Url(url) => Some(url.remedy()),
            // Nothing is known to be damaged.
            Self::Damaged { source, .. } if source.is_other_version() || is_lack_of_memory(source) => source.remedy(),
            Self::Damaged { .. } => Some(Remedy::ListDamage),
            _ => None,
        }
    }

    /// A state that the writer cannot reach: a failed assertion where assertions are on, else an error.
    #[cold]
    pub(crate) fn bug(what: &'static str) -> Self {
        debug_assert!(false, "{what}");
        Self::Bug { what }
    }

    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }
}

fn is_lack_of_memory(error: &FormatError) -> bool {
    matches!(error, FormatError::NoMemory { .. })
}

/// Whether the disk is full, or the user's quota is used up.
fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Why a streamed sample was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The source failed, or its length was not the given one. The writer is as it was before the sample.
    #[error(transparent)]
    Source(io::Error),
    /// The writer failed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_damage_is_advised_only_where_something_is_damaged() {
        let remedy = |source| WriteError::Damaged { path: PathBuf::from("a.idx"), source }.remedy();
        let damaged = FormatError::Damaged { what: "entries", detail: String::new() };
        assert_eq!(remedy(damaged), Some(Remedy::ListDamage));
        let source = grainstore_format::memory::NoMemory { len: 1 };
        assert_eq!(remedy(FormatError::NoMemory { what: "entries", source }), None);
        assert_eq!(remedy(FormatError::Development { found: 0 }), None);
        assert_eq!(remedy(FormatError::UnknownFeature { bit: 3 }), Some(Remedy::Upgrade));
    }
}
