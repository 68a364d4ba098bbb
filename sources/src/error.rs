//! Why a source cannot be opened or read.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grainstore_format::{FormatError, MAX_KEY_LEN, Remedy, UrlPath, escape_bytes, shown_path};

use grainstore_reader::SelectError;
use grainstore_store::StoreError;

use crate::{Bad, Remark};

/// Why a source cannot be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The folder could not be listed.
    #[error(transparent)]
    Listing(#[from] ListingError),
    /// A sample, or the rest of a part, cannot be read or understood.
    #[error("{0}")]
    Bad(Box<Bad>),
    /// The source cannot be used.
    #[error("{}: {why}", shown_path(path))]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// What was found, and what was expected.
        why: Remark,
    },
    /// The source is there and can be read, and has no samples.
    #[error("{}: {why}", shown_path(path))]
    NoSamples {
        /// The file, folder or pattern.
        path: PathBuf,
        /// What it has instead.
        why: Remark,
    },
    /// A file or folder cannot be opened or read.
    #[error("{}: cannot be read: {source}", shown_path(path))]
    Path {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A path does not exist, and is a URL.
    #[error(transparent)]
    Url(UrlPath),
    /// A path is too long to be a key.
    #[error("{}: its path below the folder has {len} bytes; keys have {MAX_KEY_LEN} at most", shortened(path))]
    KeyTooLong {
        /// The file.
        path: PathBuf,
        /// Length of its path below the folder in bytes.
        len: usize,
    },
    /// A dataset cannot be opened.
    #[error(transparent)]
    Dataset(Box<StoreError>),
    /// A condition does not suit a dataset.
    #[error(transparent)]
    Selection(Box<SelectError>),
    /// The threads that read could not be started.
    #[error("cannot start reading threads: {0}")]
    Threads(String),
    /// The schema of the data is not legal.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Our own bookkeeping contradicts itself: a mistake in grainstore, not in the data.
    #[error("internal error: {what}; please report it")]
    Bug {
        /// What is contradicted.
        what: &'static str,
    },
}

impl SourceError {
    /// A state that this crate cannot reach.
    #[cold]
    pub(crate) fn bug(what: &'static str) -> Self {
        debug_assert!(false, "{what}");
        Self::Bug { what }
    }

    /// What the caller can do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Listing(listing) => listing.remedy(),
            Self::Bad(bad) => bad.why.remedy.as_deref().cloned(),
            Self::Refused { why, .. } | Self::NoSamples { why, .. } => why.remedy.as_deref().cloned(),
            Self::Format(error) => error.remedy(),
            Self::Dataset(error) => error.remedy(),
            Self::Selection(error) => error.remedy(),
            Self::Url(url) => Some(url.remedy()),
            Self::Path { .. } | Self::KeyTooLong { .. } | Self::Threads(_) | Self::Bug { .. } => None,
        }
    }

    /// Whether skipping what cannot be read would have avoided it.
    pub fn is_skippable(&self) -> bool {
        matches!(self, Self::Bad(_) | Self::Listing(ListingError::Unreadable { .. }))
    }

    /// Whether the source is there and only has no samples, which is nothing to add to a dataset, and no mistake.
    pub fn is_empty_source(&self) -> bool {
        matches!(self, Self::NoSamples { .. } | Self::Listing(ListingError::NoFiles { ignored_count: 0, .. }))
    }

    pub(crate) fn refused(path: &Path, why: impl Into<Remark>) -> Self {
        Self::Refused { path: path.to_owned(), why: why.into() }
    }
}

/// The first bytes of a path that is too long to be shown.
fn shortened(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    format!("{}...", escape_bytes(&bytes[..bytes.len().min(256)]))
}

impl From<Bad> for SourceError {
    fn from(bad: Bad) -> Self {
        Self::Bad(Box::new(bad))
    }
}

/// Why a folder could not be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListingError {
    /// The folder does not exist.
    #[error("{}: no such folder", shown_path(path))]
    MissingRoot {
        /// The folder.
        path: PathBuf,
    },
    /// The path is not a folder.
    #[error("{}: not a folder", shown_path(path))]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// A folder cannot be read, or the target of a link does not exist.
    #[error("{}: cannot be read (unreadable paths in all: {count})", shown_path(path))]
    Unreadable {
        /// The first unreadable path, in path order.
        path: PathBuf,
        /// Number of unreadable paths, including this one.
        count: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The folder has no files.
    #[error("{}: no files in it or below it (other things ignored: {ignored_count})", shown_path(path))]
    NoFiles {
        /// The folder.
        path: PathBuf,
        /// Number of links to folders, special files and unreadable paths that were found.
        ignored_count: u64,
    },
}

impl ListingError {
    /// What the caller can do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Unreadable { .. } => Some(Remedy::SkipBad),
            Self::NoFiles { .. } => Some(Remedy::NameFolderOfFiles),
            Self::NotAFolder { .. } => Some(Remedy::NamePlainFolder),
            Self::MissingRoot { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_too_long_for_a_key_is_named_by_its_first_bytes() {
        let path = PathBuf::from("x".repeat(70_000));
        let text = SourceError::KeyTooLong { path, len: 70_000 }.to_string();
        assert!(text.ends_with("...: its path below the folder has 70000 bytes; keys have 65535 at most"), "{text}");
        assert!(text.len() < 400);
    }
}
