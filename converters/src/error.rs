//! Why a conversion failed.

use std::io;
use std::path::{Path, PathBuf};

use grainstore_format::{FormatError, Remedy, UrlPath, shown_path};
use grainstore_sources::{Bad, Remark, SourceError};
use grainstore_store::StoreError;
use grainstore_writer::WriteError;

/// Why a conversion failed. What was under the destination's name before is unchanged, unless only the last step failed,
/// the sync of the containing directory: then the dataset is there, but a crash may still remove it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The source cannot be opened, read or understood.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The source cannot be used.
    #[error("{}: {why}", shown_path(path))]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// What was found, and what was expected.
        why: Remark,
    },
    /// A file that is to be adopted is in a folder that the dataset may not refer to.
    #[error("{}: {why}", shown_path(path))]
    Outside {
        /// The file.
        path: PathBuf,
        /// The folder that it should be in.
        why: String,
    },
    /// A source does not return the same samples as when its conversion was interrupted.
    #[error(
        "sample {number} of the packing order was readable before the interruption and is not now, or the reverse: the \
         samples after it would differ"
    )]
    Changed {
        /// Number among all that were packed or skipped, from 0.
        number: u64,
    },
    /// An interrupted conversion left finished segments, and the options do not say whether to resume or to restart.
    #[error("{}: segments that an interrupted conversion finished are here", shown_path(path))]
    KeptWork {
        /// The directory.
        path: PathBuf,
    },
    /// The samples of an adopted file cannot be in a dataset. Samples are counted from the file's first one.
    #[error("{}: {source}", shown_path(path))]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        source: WriteError,
    },
    /// No sample could be read.
    #[error("{}: none of its {count} samples could be read", shown_path(path))]
    NothingReadable {
        /// The source.
        path: PathBuf,
        /// Number of samples that were skipped.
        count: u64,
    },
    /// The dataset would be inside the data that is to be packed.
    #[error("{}: is inside {}, which is to be packed", shown_path(destination), shown_path(origin))]
    DestinationInsideSource {
        /// The dataset.
        destination: PathBuf,
        /// The source.
        origin: PathBuf,
    },
    /// The source is in what the dataset would replace.
    #[error("{}: is inside {}, which is to be replaced", shown_path(origin), shown_path(destination))]
    SourceInsideDestination {
        /// The source.
        origin: PathBuf,
        /// The dataset.
        destination: PathBuf,
    },
    /// The folder for the dataset cannot be found.
    #[error("{}: cannot write into this folder: {source}", shown_path(path))]
    NoParent {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The threads that read could not be started.
    #[error("cannot start reading threads: {0}")]
    Threads(String),
    /// The schema of the data is not legal.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The dataset could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The dataset to append to could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Every sample is skipped for its key or its content.
    #[error("{}: there is nothing to pack: every sample has {what}", shown_path(path))]
    NothingNew {
        /// The source.
        path: PathBuf,
        /// What it has, in words.
        what: &'static str,
    },
    /// The caller wanted to stop.
    #[error("interrupted")]
    Interrupted,
    /// Our own bookkeeping contradicts itself, or a thread of ours has panicked.
    #[error("internal error: {what}; please report it")]
    Bug {
        /// What is contradicted.
        what: &'static str,
    },
}

impl ConvertError {
    /// Whether the source has no samples that a dataset lacks: then there is nothing to add to it, which is no failure.
    pub fn is_nothing_to_add(&self) -> bool {
        match self {
            Self::Source(source) => source.is_empty_source(),
            Self::NothingNew { .. } | Self::Write(WriteError::Empty) => true,
            _ => false,
        }
    }

    /// The folder that `destination` is to be in cannot be looked at.
    pub(crate) fn no_parent(folder: &Path, destination: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound
            && let Err(url) = UrlPath::refuse(destination)
        {
            return Self::Write(WriteError::Url(url));
        }
        Self::NoParent { path: folder.to_owned(), source }
    }

    /// What the caller can do about it. Where [`ConvertError::is_skippable`], skipping bad samples is another way.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Source(source) => source.remedy(),
            Self::Refused { why, .. } => why.remedy.as_deref().cloned(),
            Self::Outside { .. } => Some(Remedy::AdoptBesideFiles),
            Self::Changed { .. } => Some(Remedy::Restart),
            Self::KeptWork { .. } => Some(Remedy::ResumeOrRestart),
            Self::DestinationInsideSource { .. } => Some(Remedy::UseDestinationOutside),
            Self::SourceInsideDestination { .. } => Some(Remedy::UseOtherDestination),
            Self::NoParent { source, .. } => {
                (source.kind() == std::io::ErrorKind::NotFound).then_some(Remedy::CreateFolder)
            }
            Self::Format(error) => error.remedy(),
            Self::Write(error) => error.remedy(),
            Self::InFile { source, .. } => source.remedy(),
            Self::Store(error) => error.remedy(),
            Self::NothingReadable { .. }
            | Self::NothingNew { .. }
            | Self::Threads(_)
            | Self::Interrupted
            | Self::Bug { .. } => None,
        }
    }

    /// Whether skipping what cannot be read would have avoided it.
    pub fn is_skippable(&self) -> bool {
        matches!(self, Self::Source(source) if source.is_skippable())
    }
}

impl From<Bad> for ConvertError {
    fn from(bad: Bad) -> Self {
        Self::Source(bad.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_disk_is_a_full_disk() {
        let remedy = |kind: io::ErrorKind| {
            ConvertError::from(WriteError::Io { operation: "write", path: "x".into(), source: kind.into() }).remedy()
        };
        assert_eq!(remedy(io::ErrorKind::StorageFull), Some(Remedy::FreeSpace));
        assert_eq!(remedy(io::ErrorKind::QuotaExceeded), Some(Remedy::FreeSpace));
        assert_eq!(remedy(io::ErrorKind::PermissionDenied), None);
        assert_eq!(ConvertError::Interrupted.remedy(), None);
    }
}
