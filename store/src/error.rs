//! What can go wrong while a dataset is opened or asked.

use std::io;
use std::path::{Path, PathBuf};

use grainstore_format::{FormatError, escape_bytes, shown_key, shown_names, shown_path};

/// Why a dataset could not be opened, or a question to it not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file is not there.
    #[error("{}: no such file or directory", shown_path(.path))]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The system could not open or read a file.
    #[error("{}: {source}", shown_path(.path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
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
    /// The path names something else.
    #[error("{}: not a dataset: {why}", shown_path(.path))]
    NotADataset {
        /// The path that was to be opened.
        path: PathBuf,
        /// What is there instead.
        why: String,
    },
    /// A file is whole, but not the one that the dataset means.
    #[error("{}: {what}", shown_path(.path))]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Found and expected.
        what: String,
    },
    /// An external segment's file lies where the user has not allowed to read.
    #[error("{}: it would read {}, outside the dataset's parent directory", shown_path(.path), shown_path(.target))]
    Outside {
        /// The dataset whose manifest names the file, or the link that leads there.
        path: PathBuf,
        /// The file.
        target: PathBuf,
    },
    /// Another thread wanted it to stop.
    #[error("{}: stopped before all of it was checked", shown_path(.path))]
    Stopped {
        /// The dataset.
        path: PathBuf,
    },
    /// There is no such sample.
    #[error("no sample {ordinal}: the dataset has {sample_count}, numbered from 0")]
    NoSuchOrdinal {
        /// The ordinal asked for.
        ordinal: u64,
        /// Samples of the opened generation.
        sample_count: u64,
    },
    /// There is no such attribute.
    #[error("no attribute \"{}\" (there are: {})", escape_bytes(.name.as_bytes()), shown_names(.known))]
    NoSuchAttribute {
        /// The name asked for.
        name: String,
        /// The names of the schema.
        known: Vec<String>,
    },
    /// There is no such generation.
    #[error("{}: no generation {generation}: there are {count}, numbered from 0", shown_path(.path))]
    NoSuchGeneration {
        /// The dataset.
        path: PathBuf,
        /// The generation asked for.
        generation: usize,
        /// How many there are.
        count: usize,
    },
    /// Several datasets were to be read as one, and none was named.
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
    /// There is no such dataset among several.
    #[error("no dataset {member}: there are {member_count}, numbered from 0")]
    NoSuchMember {
        /// The dataset asked for.
        member: usize,
        /// How many there are.
        member_count: usize,
    },
    /// One sample is damaged, or what the index says of it.
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
    /// The system gave no threads.
    #[error("no threads to work with: {0}")]
    Threads(String),
}

impl StoreError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path: path.to_owned() },
            _ => Self::Io { path: path.to_owned(), source },
        }
    }

    /// Whether the system refused to let us look, which says nothing of what is there.
    pub(crate) fn is_refusal(&self) -> bool {
        const TOO_MANY_OPEN_FILES: [i32; 2] = [23, 24]; // ENFILE, EMFILE
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::OutOfMemory)
            || source.raw_os_error().is_some_and(|code| TOO_MANY_OPEN_FILES.contains(&code))
    }

    pub(crate) fn format(path: &Path, source: FormatError) -> Self {
        Self::Format { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, what: &'static str, detail: impl Into<String>) -> Self {
        Self::format(path, FormatError::Damaged { what, detail: detail.into() })
    }

    pub(crate) fn mismatch(path: &Path, what: impl Into<String>) -> Self {
        Self::Mismatch { path: path.to_owned(), what: what.into() }
    }

    /// The error without the path in front, for messages that name the file themselves.
    pub(crate) fn without_path(&self) -> String {
        match self {
            Self::NotFound { .. } => "no such file or directory".to_owned(),
            Self::Io { source, .. } => source.to_string(),
            Self::Format { source, .. } => source.to_string(),
            Self::Mismatch { what, .. } | Self::Sample { what, .. } => what.clone(),
            Self::NotADataset { why, .. } => why.clone(),
            Self::Outside { target, .. } => {
                format!("it would read {}, outside the dataset's parent directory", shown_path(target))
            }
            other => other.to_string(),
        }
    }
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
            what: "CRC-32 of stored bytes 8193024..8304131 is 9f3c21aa, entry says 9f3c21ab".into(),
        };
        assert_eq!(
            error.to_string(),
            "imagenet.grain/00003.seg: sample 1281166 (key \"n02099601/3.jpg\"): \
             CRC-32 of stored bytes 8193024..8304131 is 9f3c21aa, entry says 9f3c21ab"
        );
    }

    #[test]
    fn an_unknown_attribute_is_answered_with_the_known_ones() {
        let error = StoreError::NoSuchAttribute { name: "lable".into(), known: vec!["label".into(), "width".into()] };
        assert_eq!(error.to_string(), "no attribute \"lable\" (there are: label, width)");
    }
}
