//! Why a conversion failed.

use std::io;
use std::path::PathBuf;

use grainstore_format::{FormatError, Remedy, shown_path};
use grainstore_sources::{Bad, Remark, SourceError};
use grainstore_store::StoreError;
use grainstore_writer::WriteError;

/// Why a conversion failed. Nothing is under the destination's name that was not there before.
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
    /// A file that is to be adopted is where the dataset may not point.
    #[error("{}: {why}", shown_path(path))]
    Outside {
        /// The file.
        path: PathBuf,
        /// Where it is, and where it should be.
        why: String,
    },
    /// A source does not give what it gave when its conversion was interrupted.
    #[error(
        "sample {number} of the order can be read now and could not when the conversion was interrupted, or the other \
         way round: what follows it would not be what followed then"
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
    /// The samples of a file that is adopted cannot be those of a dataset; they are counted from the file's first.
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
    /// The dataset would be inside the data that it is made of.
    #[error("{}: is inside {}, which is to be packed", shown_path(destination), shown_path(origin))]
    DestinationInsideSource {
        /// The dataset to be.
        destination: PathBuf,
        /// The source.
        origin: PathBuf,
    },
    /// The source is in what the dataset would replace.
    #[error("{}: is inside {}, which is to be replaced", shown_path(origin), shown_path(destination))]
    SourceInsideDestination {
        /// The source.
        origin: PathBuf,
        /// The dataset to be.
        destination: PathBuf,
    },
    /// The folder that the dataset is to be in cannot be found.
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
    /// The dataset that is to grow could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The caller wanted to stop.
    #[error("interrupted")]
    Interrupted,
}

impl ConvertError {
    /// What the caller can do about it. Where [`ConvertError::is_skippable`], skipping it is another way.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Source(source) => source.remedy(),
            Self::Refused { why, .. } => why.remedy.as_deref().cloned(),
            Self::Outside { .. } => Some(Remedy::AdoptBesideFiles),
            Self::Changed { .. } => Some(Remedy::Restart),
            Self::KeptWork { .. } => Some(Remedy::ResumeOrRestart),
            Self::DestinationInsideSource { .. } => Some(Remedy::UseDestinationOutside),
            Self::SourceInsideDestination { .. } => Some(Remedy::UseOtherDestination),
            Self::NoParent { .. } => Some(Remedy::CreateFolder),
            Self::Format(error) => error.remedy(),
            Self::Write(error) => error.remedy(),
            Self::InFile { source, .. } => source.remedy(),
            Self::Store(error) => error.remedy(),
            Self::NothingReadable { .. } | Self::Threads(_) | Self::Interrupted => None,
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
