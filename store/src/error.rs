//! What can go wrong when a dataset is opened or queried.

use std::io;
use std::path::{Path, PathBuf};

use grainstore_format::memory::NoMemory;
use grainstore_format::{FormatError, Remedy, UrlPath, escape_bytes, shown_key, shown_names, shown_path};

/// Why a dataset could not be opened, or a query failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file does not exist.
    #[error("{}: no such file or directory", shown_path(.path))]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// A path does not exist, and is a URL.
    #[error(transparent)]
    Url(UrlPath),
    /// The system could not open or read a file.
    #[error("{}: {source}", shown_path(.path))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file breaks a rule of the format.
    #[error("{}: {source}", shown_path(.path))]
    Format {
        /// The file.
        path: PathBuf,
        /// Which rule, found and expected.
        source: FormatError,
    },
    /// The path is something else.
    #[error("{}: not a dataset: {why}", shown_path(.path))]
    NotADataset {
        /// The path given.
        path: PathBuf,
        /// What was found instead.
        why: String,
    },
    /// The path names a dataset that an interrupted command did not finish.
    #[error("{}: not a dataset: {why}; \"{}\" is what an interrupted command left", shown_path(.path), shown_name(.partial))]
    Unfinished {
        /// The path given.
        path: PathBuf,
        /// What was found instead.
        why: String,
        /// The directory that the interrupted command left.
        partial: PathBuf,
    },
    /// A file is whole, but not the one that the dataset expects.
    #[error("{}: {what}", shown_path(.path))]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Found and expected.
        what: String,
    },
    /// A file of the dataset is another one now, or gone: the dataset was changed or replaced since it was opened.
    #[error("{}: changed since the dataset was opened: {what}", shown_path(.path))]
    Changed {
        /// The file.
        path: PathBuf,
        /// Found and expected.
        what: String,
    },
    /// The file of an external segment is where reading has not been allowed.
    #[error("{}: it would read {}, outside the dataset's parent directory", shown_path(.path), shown_path(.target))]
    Outside {
        /// The dataset whose manifest names the file, or the link that points there.
        path: PathBuf,
        /// The file.
        target: PathBuf,
    },
    /// The caller stopped the check.
    #[error("{}: stopped before all of it was checked", shown_path(.path))]
    Stopped {
        /// The dataset.
        path: PathBuf,
    },
    /// The sample does not exist.
    #[error("no sample {ordinal}: the dataset has {sample_count}, numbered from 0")]
    NoSuchOrdinal {
        /// The ordinal given.
        ordinal: u64,
        /// Samples of the opened generation.
        sample_count: u64,
    },
    /// The attribute does not exist.
    #[error("no attribute \"{}\" (there are: {})", escape_bytes(.name.as_bytes()), shown_names(.known))]
    NoSuchAttribute {
        /// The name given.
        name: String,
        /// The names of the schema.
        known: Vec<String>,
    },
    /// The attribute has no categories.
    #[error("attribute \"{}\" is of type {}, not category", escape_bytes(.name.as_bytes()), escape_bytes(.kind.as_bytes()))]
    NotCategory {
        /// The attribute.
        name: String,
        /// Its type.
        kind: String,
    },
    /// The generation does not exist.
    #[error("{}: no generation {generation}: there are {count}, numbered from 0", shown_path(.path))]
    NoSuchGeneration {
        /// The dataset.
        path: PathBuf,
        /// The generation given.
        generation: usize,
        /// How many there are.
        count: usize,
    },
    /// A collection of no datasets.
    #[error("no dataset to read, expected 1 or more")]
    NoMembers,
    /// Datasets that cannot be read as one.
    #[error("{} and {} cannot be read as one: {what}", shown_path(.first), shown_path(.second))]
    Unlike {
        /// The first dataset.
        first: PathBuf,
        /// The one that differs from it.
        second: PathBuf,
        /// The first difference.
        what: String,
    },
    /// The collection has no such dataset.
    #[error("no dataset {member}: there are {member_count}, numbered from 0")]
    NoSuchMember {
        /// The dataset given.
        member: usize,
        /// How many there are.
        member_count: usize,
    },
    /// One sample is damaged, or its index entry is.
    #[error("{}: sample {ordinal}{}: {what}", shown_path(.path), shown_key(.key.as_deref()))]
    Sample {
        /// The segment's file.
        path: PathBuf,
        /// The segment's number.
        segment: usize,
        /// The sample's ordinal.
        ordinal: u64,
        /// Its key, where it has one that can be read.
        key: Option<Vec<u8>>,
        /// Where its stored bytes start in the segment's file.
        offset: u64,
        /// Found and expected.
        what: String,
    },
    /// The system has no memory for what a file requires.
    #[error("{}: {source}", shown_path(.path))]
    NoMemory {
        /// The file.
        path: PathBuf,
        /// Bytes that were requested.
        source: NoMemory,
    },
    /// The system could not start threads.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// The store contradicts itself: a mistake in grainstore, not in the data.
    #[error("internal error: {what}; please report it")]
    Bug {
        /// What cannot happen.
        what: &'static str,
    },
}

impl StoreError {
    /// What the caller can do about it.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NoSuchOrdinal { sample_count, .. } if *sample_count > 0 => {
                Some(Remedy::UseOrdinalBelow(*sample_count))
            }
            Self::Format { source, .. } if source.remedy().is_some() => source.remedy(),
            // Nothing is known to be damaged.
            Self::Format { source: FormatError::NoMemory { .. } | FormatError::UnheldMember { .. }, .. } => None,
            Self::NotFound { path } | Self::Format { path, .. } | Self::Mismatch { path, .. }
                if path.extension().is_some_and(|extension| extension == "idx") =>
            {
                path.file_name().and_then(|name| index_remedy(name.to_str()?))
            }
            Self::Url(url) => Some(url.remedy()),
            Self::Unfinished { .. } => Some(Remedy::Resume),
            Self::Changed { .. } => Some(Remedy::OpenAgain),
            Self::Outside { .. } => Some(Remedy::AllowExternal),
            Self::Sample { .. } => Some(Remedy::ListDamage),
            _ => None,
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path: path.to_owned() },
            _ => Self::Io { path: path.to_owned(), source },
        }
    }

    /// Whether the system refused access, so that nothing is known about the file.
    pub(crate) fn is_refusal(&self) -> bool {
        const TOO_MANY_OPEN_FILES: [i32; 2] = [23, 24]; // ENFILE, EMFILE
        if self.is_lack_of_memory() {
            return true;
        }
        let Self::Io { source, .. } = self else { return false };
        source.kind() == io::ErrorKind::PermissionDenied
            || source.raw_os_error().is_some_and(|code| TOO_MANY_OPEN_FILES.contains(&code))
    }

    /// Whether memory is missing, which says nothing about the file.
    pub(crate) fn is_lack_of_memory(&self) -> bool {
        match self {
            Self::NoMemory { .. } | Self::Format { source: FormatError::NoMemory { .. }, .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::OutOfMemory,
            _ => false,
        }
    }

    /// Whether another version of grainstore wrote a file, which may be undamaged. spec.md: VER-1.
    pub fn is_other_version(&self) -> bool {
        matches!(self, Self::Format { source, .. } if source.is_other_version())
    }

    pub(crate) fn format(path: &Path, source: FormatError) -> Self {
        Self::Format { path: path.to_owned(), source }
    }

    pub(crate) fn no_memory(path: &Path, source: NoMemory) -> Self {
        Self::NoMemory { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, what: &'static str, detail: impl Into<String>) -> Self {
        Self::format(path, FormatError::Damaged { what, detail: detail.into() })
    }

    pub(crate) fn mismatch(path: &Path, what: impl Into<String>) -> Self {
        Self::Mismatch { path: path.to_owned(), what: what.into() }
    }

    /// A state that the store cannot reach.
    pub(crate) fn bug(what: &'static str) -> Self {
        debug_assert!(false, "{what}");
        Self::Bug { what }
    }

    /// The error without the path in front, for messages that name the file themselves.
    pub(crate) fn without_path(&self) -> String {
        match self {
            Self::NotFound { .. } => "no such file or directory".to_owned(),
            Self::Io { source, .. } => source.to_string(),
            Self::Format { source, .. } => source.to_string(),
            Self::Mismatch { what, .. } | Self::Changed { what, .. } | Self::Sample { what, .. } => what.clone(),
            Self::NotADataset { why, .. } | Self::Unfinished { why, .. } => why.clone(),
            Self::Outside { target, .. } => {
                format!("it would read {}, outside the dataset's parent directory", shown_path(target))
            }
            other => other.to_string(),
        }
    }
}

/// The last part of a path, or all of a path that ends with `..`, made safe for a terminal.
fn shown_name(path: &Path) -> String {
    escape_bytes(path.file_name().unwrap_or(path.as_os_str()).as_encoded_bytes())
}

/// What helps where a file of this name is lost or damaged, if it is an index.
pub(crate) fn index_remedy(name: &str) -> Option<Remedy> {
    // The index of an external segment is in no other file.
    let remedy = if name.starts_with("index-") { Remedy::RebuildIndex } else { Remedy::AdoptAgain };
    name.ends_with(".idx").then_some(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_sample_names_file_ordinal_key_and_what() {
        let error = StoreError::Sample {
            path: "imagenet.grain/00003.seg".into(),
            segment: 3,
            ordinal: 1_281_166,
            key: Some(b"n02099601/3.jpg".to_vec()),
            offset: 8_193_024,
            what: "CRC-32 of stored bytes 8193024..8304131 is 9f3c21aa, the entry has 9f3c21ab".into(),
        };
        assert_eq!(
            error.to_string(),
            "imagenet.grain/00003.seg: sample 1281166 (key \"n02099601/3.jpg\"): \
             CRC-32 of stored bytes 8193024..8304131 is 9f3c21aa, the entry has 9f3c21ab"
        );
    }

    #[test]
    fn the_error_of_an_unknown_attribute_lists_the_known_ones() {
        let error = StoreError::NoSuchAttribute { name: "lable".into(), known: vec!["label".into(), "width".into()] };
        assert_eq!(error.to_string(), "no attribute \"lable\" (there are: label, width)");
    }
}
