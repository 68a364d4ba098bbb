//! The formats and options of an export.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::str::FromStr;

use grainstore_reader::OnDamage;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Plain files.
    Folder,
    /// Tar archives for WebDataset.
    Tar,
    /// TFRecord files of `tf.train.Example`.
    TfRecord,
    /// An LMDB environment.
    Lmdb,
    /// Parquet files.
    Parquet,
}

/// The error for a name that is not the name of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("format is {found:?}, expected folder, tar, tfrecord, lmdb or parquet")]
pub struct ParseFormatError {
    found: String,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Folder, Self::Tar, Self::TfRecord, Self::Lmdb, Self::Parquet];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Tar => "tar",
            Self::TfRecord => "tfrecord",
            Self::Lmdb => "lmdb",
            Self::Parquet => "parquet",
        }
    }

    /// The format that the end of a file's name says: `.tar`, `.tfrecord`, `.parquet` or `.lmdb`. `None` if it says
    /// nothing: a folder may have any name.
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        [Self::Tar, Self::TfRecord, Self::Parquet, Self::Lmdb].into_iter().find(|format| format.name() == extension)
    }

    /// The extension of its files, if each file can be used on its own.
    pub(crate) fn extension(self) -> Option<&'static str> {
        match self {
            Self::Folder | Self::Lmdb => None,
            Self::Tar | Self::TfRecord | Self::Parquet => Some(self.name()),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = || ParseFormatError { found: name.to_owned() };
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(found)
    }
}

/// The options of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The format.
    pub format: Format,
    /// If OUT is a folder of tar, TFRecord or Parquet files, a file ends before the sample that would make its payloads
    /// more than this many bytes.
    pub shard_len: u64,
    /// The number of threads that write, each with one that reads ahead; by default one for each core. The bytes of
    /// tar, TFRecord and Parquet files do not depend on it.
    pub jobs: Option<NonZeroUsize>,
    /// What to do about a sample that cannot be read or is damaged.
    pub on_damage: OnDamage,
    /// The attributes and fields to write; all if there are none.
    pub only: Vec<String>,
    /// The attributes and fields to leave out.
    pub exclude: Vec<String>,
}

impl ExportOptions {
    /// The default length of the payloads of a shard: 1 GiB.
    pub const DEFAULT_SHARD_LEN: u64 = 1 << 30;

    /// The default options of a format: all attributes and fields; a damaged sample ends the export.
    pub fn to(format: Format) -> Self {
        Self {
            format,
            shard_len: Self::DEFAULT_SHARD_LEN,
            jobs: None,
            on_damage: OnDamage::Fail,
            only: Vec::new(),
            exclude: Vec::new(),
        }
    }
}
