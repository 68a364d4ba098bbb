//! The interface between foreign formats and the code that packs, adopts and lists them.
//!
//! A [`Source`] is a list of parts (shards, key ranges, row groups) that can be read independently. Each part is a
//! stream of samples. A source that can be read from any sample also has the positions of its samples ([`Blocks`]).
//! Then many threads can read them in any order, and an interrupted conversion resumes without reading the first
//! samples again.
//!
//! A source knows one format. Orders, threads, resuming and writing are the business of grainstore-converters.

use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use grainstore_format::{Metadata, escape_bytes, shown_path};
use grainstore_writer::{Sample, StreamedSample};
use xxhash_rust::xxh64::Xxh64;

use crate::Remark;

/// Longer samples are streamed and not held in memory: 64 MiB.
pub const WHOLE_LEN_MAX: u64 = 64 << 20;

/// Foreign data, read as parts of samples. The same data give the same samples each time, in the same order.
///
/// A source is a [`Description`], which is complete once the source is open, and three functions that read: where the
/// samples are, the samples, and whether the data are still the same. A wrapper has a description of its own.
///
/// `part` is an index into [`Description::parts`]. With any other, a source returns an error or panics.
pub trait Source: Send + Sync {
    /// What the data are.
    fn description(&self) -> &Description;

    /// Where the samples of a part are, in order; `None` where they can only be read from the first to the last.
    ///
    /// If damage hides the samples that follow, it is the last block, of one sample: opening that block reports the
    /// reason.
    ///
    /// # Errors
    /// Where the part cannot be opened or read.
    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad>;

    /// Opens a part at `position`: 0, its start, or the position of one of its blocks.
    ///
    /// # Errors
    /// Where it cannot be opened.
    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad>;

    /// A hash of the current paths, lengths, times and inodes of the data: a copy of the data has another. An interrupted
    /// conversion is resumed only if the hash is the same. [`stamp_of_parts`] is the hash of the parts' files.
    fn stamp(&self) -> u64;
}

/// Everything that is known about a source before its samples are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The format, for the user: "folder", "TFRecord".
    pub kind: &'static str,
    /// The files and folders that hold the data.
    pub origins: Vec<PathBuf>,
    /// Attributes and fields of every sample, and what is stored with the dataset.
    pub metadata: Metadata,
    /// The parts, in source order; at least one.
    pub parts: Vec<SourcePart>,
    /// Whether every sample has a key; otherwise no sample has one.
    pub is_keyed: bool,
    /// Whether no two samples can have the same key.
    pub has_distinct_keys: bool,
    /// Whether it can be read only once, from its start to its end.
    pub is_once: bool,
    /// Whether [`Source::blocks`] reads no data, so that blocks are used in source order too.
    pub is_listed: bool,
    /// Whether the samples of every part come in the order of their bytes in its file.
    pub ascends: bool,
    /// Whether a sample may wait for more than its file, such as another process that changes it.
    pub waits: bool,
    /// Why its files cannot be adopted, in words that end a sentence; `None` where they can.
    pub not_adoptable: Option<Remark>,
    /// Notes for the user on how the data were interpreted, a sentence each.
    pub notes: Vec<Remark>,
    /// Warnings for the user, such as links that were not followed; a sentence each.
    pub warnings: Vec<Remark>,
    /// How much the warnings say is not packed.
    pub not_packed: NotPacked,
    /// What was skipped before any sample was read, such as a folder that cannot be listed.
    pub skipped: Vec<Skipped>,
}

/// Numbers of what a source has beside its samples, and what no sample takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotPacked {
    /// Keys of a database.
    pub keys: u64,
    /// Files among shards that are none themselves.
    pub files: u64,
}

impl Description {
    /// Samples with keys that may repeat, in any order in their files, which can be adopted; nothing to report.
    pub fn new(kind: &'static str, origins: Vec<PathBuf>, metadata: Metadata, parts: Vec<SourcePart>) -> Self {
        Self {
            kind,
            origins,
            metadata,
            parts,
            is_keyed: true,
            has_distinct_keys: false,
            is_once: false,
            is_listed: false,
            ascends: false,
            waits: false,
            not_adoptable: None,
            notes: Vec::new(),
            warnings: Vec::new(),
            not_packed: NotPacked::default(),
            skipped: Vec::new(),
        }
    }

    /// The file or folder of the first part, for errors that concern the whole source.
    pub fn first_path(&self) -> PathBuf {
        self.parts.first().map_or_else(PathBuf::new, |part| part.path.clone())
    }
}

/// A hash of the path, length and times of each part's file.
pub fn stamp_of_parts(parts: &[SourcePart]) -> u64 {
    let mut hash = Xxh64::new(0);
    for part in parts {
        hash.update(&file_stamp(&part.path).to_le_bytes());
    }
    hash.digest()
}

/// Reads the samples of a part in order.
pub trait SampleReader {
    /// The next sample; `None` at the end. After a [`Bad`] that is not [`Reach::Rest`], the sample after it.
    ///
    /// # Errors
    /// Where a sample cannot be read or understood.
    fn next(&mut self) -> Result<Option<SourceSample>, Bad>;

    /// Length of the next sample in bytes, where it is known before the sample is read.
    fn ahead_len(&mut self) -> Option<u64> {
        None
    }

    /// The file of the last sample, where it is not the part's.
    fn file(&self) -> Option<PathBuf> {
        None
    }

    /// The payload of the last [`SourceSample::Long`]. The caller reads it before it calls [`Self::next`] again.
    fn payload(&mut self) -> &mut dyn Read;
}

/// A sample of a source.
#[derive(Debug)]
pub enum SourceSample {
    /// In memory.
    Whole {
        /// The sample.
        sample: Sample,
        /// In [`Layout::InPlace`], where its payload begins in the part's file, in bytes; else 0.
        offset: u64,
    },
    /// More than [`WHOLE_LEN_MAX`] bytes, which [`SampleReader::payload`] reads.
    Long {
        /// The sample without its bytes.
        sample: StreamedSample,
        /// As in `Whole`.
        offset: u64,
    },
    /// One that is not to be stored. Nothing is wrong with it; no format has such samples, but a wrapper of a source may
    /// leave samples out.
    LeftOut,
}

/// How the bytes of a payload are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Its fields, one after the other, in the order of the schema, and nothing else.
    Packed,
    /// One byte range of the part's file, unchanged: the fields, and what the file has between them.
    InPlace,
}

/// A part of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePart {
    /// Its file or folder.
    pub path: PathBuf,
    /// Bytes that are read; 0 where that is unknown.
    pub len: u64,
    /// Number of its samples, including bad ones, where it is known before they are read.
    pub sample_count: Option<u64>,
}

/// Where the samples of a part are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Every sample by itself: the position of sample i is i. For samples that are files: reading neighbours together
    /// would not be faster.
    Each(u64),
    /// Runs of neighbours.
    Runs(Vec<SourceBlock>),
}

/// Samples that are stored together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceBlock {
    /// What [`Source::open`] takes; any number that the source understands.
    pub position: u64,
    /// Approximate length of these samples in bytes.
    pub len: u64,
    /// Number of samples, including bad ones.
    pub sample_count: u32,
}

/// Gathers samples into blocks: about 1 MiB of neighbours and 4,096 samples at most, or one sample of 64 KiB or more.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    blocks: Vec<SourceBlock>,
}

/// Why a sample, or the rest of a part, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub location: RecordLocation,
    /// What was found, and what was expected.
    pub why: Remark,
    /// How much is lost.
    pub reach: Reach,
}

/// A location in a file, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordLocation {
    /// Number of the record, member, row or line, from 0.
    pub record: Option<u64>,
    /// Bytes from the start of the file, or of its content where it is compressed.
    pub offset: Option<u64>,
    /// The key of the sample or the name of the member.
    pub name: Option<Vec<u8>>,
}

impl RecordLocation {
    /// The location of a sample of which only the key is known; an empty key is none.
    #[must_use]
    pub fn of_key(key: &[u8]) -> Self {
        Self { name: (!key.is_empty()).then(|| key.to_vec()), ..Self::default() }
    }
}

/// How much is lost with a [`Bad`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One sample.
    Sample,
    /// The rest of the part.
    Rest,
}

/// Something that was skipped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// Where in it, and why.
    pub why: Remark,
}

/// A hash of a file's path, length, times and inode. A write to the file changes one of them.
pub(crate) fn file_stamp(path: &Path) -> u64 {
    let mut hash = Xxh64::new(0);
    hash.update(path.as_os_str().as_encoded_bytes());
    if let Ok(metadata) = std::fs::metadata(path) {
        for time in [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()] {
            hash.update(&time.to_le_bytes());
        }
        for number in [metadata.len(), metadata.ino(), metadata.dev()] {
            hash.update(&number.to_le_bytes());
        }
    }
    hash.digest()
}

impl SourceBlock {
    /// Whether a [`BlockBuilder`] adds a sample of `len` bytes to this block, and does not begin another.
    pub(crate) fn takes(&self, len: u64) -> bool {
        let full = self.len >= BlockBuilder::RUN_LEN || self.sample_count >= BlockBuilder::RUN_COUNT_MAX;
        let alone = self.sample_count == 1 && self.len >= BlockBuilder::ALONE_LEN;
        !(full || alone || len >= BlockBuilder::ALONE_LEN)
    }
}

impl BlockBuilder {
    /// Bytes at which a block is full.
    pub const RUN_LEN: u64 = 1 << 20;
    /// Samples at which a block is full, however short they are: in memory, each takes a few hundred bytes besides its
    /// payload.
    pub const RUN_COUNT_MAX: u32 = 4096;
    /// Bytes from which a sample is a block of its own.
    pub const ALONE_LEN: u64 = 64 << 10;

    /// Adds the next sample, which begins at `position` and has about `len` bytes.
    pub fn push(&mut self, position: u64, len: u64) {
        match self.blocks.last_mut().filter(|block| block.takes(len)) {
            Some(block) => {
                block.len += len;
                block.sample_count += 1;
            }
            None => self.blocks.push(SourceBlock { position, len, sample_count: 1 }),
        }
    }

    /// The blocks of all samples that were added.
    pub fn finish(self) -> Blocks {
        Blocks::Runs(self.blocks)
    }
}

impl Bad {
    /// An error at a location in a file.
    pub fn new(path: &Path, location: RecordLocation, why: impl Into<Remark>, reach: Reach) -> Self {
        Self { path: path.to_owned(), location, why: why.into(), reach }
    }

    /// A part that the source does not have.
    pub(crate) fn no_part(source: &Description, part: usize) -> Self {
        let why = format!("there is no part {part}");
        Self::new(&source.first_path(), RecordLocation::default(), why, Reach::Rest)
    }

    /// A file that cannot be opened or read.
    pub fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::new(path, RecordLocation::default(), error.to_string(), Reach::Rest)
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", shown_path(&self.path), self.location, self.why)
    }
}

impl fmt::Display for RecordLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.record.map(|record| format!("record {record}")),
            self.name.as_ref().map(|name| format!("\"{}\"", escape_bytes(&name[..name.len().min(256)]))),
            self.offset.map(|offset| format!("at byte {offset}")),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if text.is_empty() { Ok(()) } else { write!(f, "{text}: ") }
    }
}

impl From<Bad> for Skipped {
    fn from(bad: Bad) -> Self {
        Self { path: bad.path, why: bad.why.after(&bad.location) }
    }
}
