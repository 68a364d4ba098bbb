//! Why an export failed.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use grainstore_format::{Remedy, UrlPath, escape_bytes, shown_key, shown_path};
use grainstore_reader::ReadError;
use grainstore_store::StoreError;

/// Why an export failed. OUT is as it was before, and everything that this export wrote is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The output exists already.
    #[error("{}: already exists, and an export never replaces anything", shown_path(path))]
    Exists {
        /// The output.
        path: PathBuf,
    },
    /// The `.partial` path, where the output is built, exists already.
    #[error(
        "{}: already exists: if a killed export left it and no export is running there, remove it",
        shown_path(path)
    )]
    PartialExists {
        /// The `.partial` path.
        path: PathBuf,
    },
    /// The last part of the path is not a name, or the name does not fit the format.
    #[error("{}: {why}", shown_path(path))]
    BadDestination {
        /// The output.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The format cannot hold the names or types of this dataset's attributes and fields.
    #[error("{what}")]
    Unfit {
        /// What was found, and what the format holds.
        what: String,
    },
    /// The attributes or fields to write cannot be chosen so.
    #[error("{why}")]
    BadColumns {
        /// What is wrong, and which there are.
        why: String,
    },
    /// A key cannot be the name of a file below the target.
    #[error("sample {ordinal} (key \"{}\"): {why}", escape_bytes(key))]
    BadName {
        /// The sample.
        ordinal: u64,
        /// Its key.
        key: Vec<u8>,
        /// What is wrong with it.
        why: String,
    },
    /// A sample that the format cannot hold.
    #[error("sample {ordinal}{}: {why}", shown_key(key.as_deref()))]
    BadSample {
        /// The sample.
        ordinal: u64,
        /// Its key.
        key: Option<Vec<u8>>,
        /// What was found, and what the format holds.
        why: String,
    },
    /// The destination is a URL.
    #[error(transparent)]
    Url(UrlPath),
    /// An operation on a file or folder failed.
    #[error("{}: cannot {action}: {source}", shown_path(path))]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The library of a format failed.
    #[error("{}: cannot be written: {source}", shown_path(path))]
    Library {
        /// The file or folder.
        path: PathBuf,
        /// The error of the library.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The dataset cannot be read, or a sample is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A thread could not be started.
    #[error("cannot start a thread: {source}")]
    Threads {
        /// The error of the operating system.
        source: io::Error,
    },
    /// The caller asked the export to stop.
    #[error("interrupted")]
    Interrupted,
    /// The export contradicts itself: a mistake in grainstore, not in the data.
    #[error("internal error: {what}; please report it")]
    Bug {
        /// What is contradicted.
        what: &'static str,
    },
}

/// Inside an [`io::Error`]: the caller asked the export to stop.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Stopped;

/// [`ExportError::bug`] as an [`io::Error`].
#[cold]
pub(crate) fn io_bug(what: &'static str) -> io::Error {
    debug_assert!(false, "{what}");
    io::Error::other(ReadError::Bug { what })
}

impl ExportError {
    /// What the caller can do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            error if error.is_disk_full() => Some(Remedy::FreeSpace),
            Self::Exists { .. } => Some(Remedy::UseOtherDestination),
            Self::BadDestination { .. } => Some(Remedy::UseFittingName),
            Self::Url(url) => Some(url.remedy()),
            Self::BadName { .. } => Some(Remedy::ExportOtherKeys),
            Self::BadSample { .. } | Self::Unfit { .. } => Some(Remedy::ExportOtherTypes),
            Self::Read(ReadError::Unreadable { .. } | ReadError::Store(StoreError::Sample { .. })) => {
                Some(Remedy::SkipDamaged)
            }
            Self::Read(read) => read.remedy(),
            _ => None,
        }
    }

    /// Whether the disk is full, or the user's quota is used up.
    pub fn is_disk_full(&self) -> bool {
        let mut next = match self {
            Self::Io { source, .. } => Some(source as &(dyn Error + 'static)),
            Self::Library { source, .. } => Some(source.as_ref() as &(dyn Error + 'static)),
            _ => None,
        };
        while let Some(error) = next {
            let io = error.downcast_ref::<io::Error>();
            if io.is_some_and(|io| matches!(io.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)) {
                return true;
            }
            next = error.source();
        }
        false
    }

    /// A state that an export cannot reach: a failed assertion where assertions are on, else an error.
    #[cold]
    pub(crate) fn bug(what: &'static str) -> Self {
        debug_assert!(false, "{what}");
        Self::Bug { what }
    }

    /// Makes an error of writing to `path`, unless the error came from the sample that was copied there.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            let error = match error.downcast::<ReadError>() {
                Ok(read) => return Self::Read(read),
                Err(error) => error,
            };
            match error.downcast::<Stopped>() {
                Ok(Stopped) => Self::Interrupted,
                Err(source) => Self::Io { action, path: path.to_path_buf(), source },
            }
        }
    }
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}
