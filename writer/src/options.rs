//! The input of the writer: options and samples.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;

use grainstore_format::{
    Alignment, AttributeValue, ChunkSize, Field, FieldType, FormatError, Geometry, Metadata, Schema, UnknownName,
    UserMetadata, choice_of,
};

/// Whether samples are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// All samples are stored raw.
    #[default]
    None,
    /// LZ4, for samples of at most 64 MiB that shrink by a sixteenth or more.
    Lz4,
}

impl Compression {
    /// The names of the methods.
    pub const NAMES: [&'static str; 2] = ["none", "lz4"];
    const ALL: [Self; 2] = [Self::None, Self::Lz4];
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::NAMES[*self as usize])
    }
}

impl FromStr for Compression {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        choice_of(name, &Self::NAMES, Self::ALL)
    }
}

/// The options of a new dataset.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// Chunk size, alignment and hash seed. Use a secret seed for keys from untrusted sources: then nobody can craft
    /// keys that collide. The default seed is 0.
    pub geometry: Geometry,
    /// A segment is closed before a sample that would make its data longer than this many bytes.
    pub segment_size: u64,
    /// Whether samples are compressed.
    pub compression: Compression,
    /// The schema, and the user metadata.
    pub metadata: Metadata,
    /// Whether every sample has a key; otherwise none has.
    pub keyed: bool,
    /// The number of threads that checksum and compress; `None` uses all cores. The result does not depend on it.
    pub jobs: Option<NonZeroUsize>,
    /// Whether an existing dataset with the final name is replaced, once the new one is complete.
    pub overwrite: bool,
    /// Bytes of memory for buffers. In addition the writer holds a few bytes for each 64 KiB of index.
    pub memory_len: u64,
}

impl WriterOptions {
    /// 4 GiB.
    pub const DEFAULT_SEGMENT_SIZE: u64 = 4 << 30;
    /// 256 MiB.
    pub const DEFAULT_MEMORY_LEN: u64 = 256 << 20;

    /// Default options for a dataset of this schema, with user metadata.
    pub fn with_metadata(metadata: Metadata) -> Self {
        Self {
            geometry: Geometry { chunk_size: ChunkSize::DEFAULT, alignment: Alignment::PACKED, hash_seed: 0 },
            segment_size: Self::DEFAULT_SEGMENT_SIZE,
            compression: Compression::None,
            metadata,
            keyed: true,
            jobs: None,
            overwrite: false,
            memory_len: Self::DEFAULT_MEMORY_LEN,
        }
    }

    /// Metadata of a dataset of one field `data` and no attributes.
    ///
    /// # Errors
    /// Never; the schema is legal.
    pub fn plain_metadata() -> Result<Metadata, FormatError> {
        let schema = Schema::new(vec![], vec![Field { name: "data".into(), kind: FieldType::Bytes }])?;
        Ok(Metadata { schema, user: UserMetadata::default() })
    }
}

impl Default for WriterOptions {
    /// One field `data`, no attributes, keyed, 256 KiB chunks, 4 GiB segments, stored raw.
    #[expect(clippy::expect_used, reason = "a schema of one field `data` is legal")]
    fn default() -> Self {
        Self::with_metadata(Self::plain_metadata().expect("a schema of one field `data` is legal"))
    }
}

/// The options for adding samples to a dataset. Geometry, schema and whether there are keys come from the dataset.
#[derive(Debug, Clone)]
pub struct AppendOptions {
    /// New user metadata for the whole dataset, with the dataset's own schema; `None` keeps the present metadata.
    pub metadata: Option<Metadata>,
    /// As in [`WriterOptions`].
    pub segment_size: u64,
    /// As in [`WriterOptions`]; existing samples do not change.
    pub compression: Compression,
    /// As in [`WriterOptions`].
    pub jobs: Option<NonZeroUsize>,
    /// As in [`WriterOptions`].
    pub memory_len: u64,
}

impl Default for AppendOptions {
    /// The dataset's metadata, 4 GiB segments, stored raw.
    fn default() -> Self {
        Self {
            metadata: None,
            segment_size: WriterOptions::DEFAULT_SEGMENT_SIZE,
            compression: Compression::None,
            jobs: None,
            memory_len: WriterOptions::DEFAULT_MEMORY_LEN,
        }
    }
}

/// A sample that is held in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// 1 to 65535 bytes; empty in a keyless dataset.
    pub key: Vec<u8>,
    /// One for each attribute of the schema, in its order.
    pub attributes: Vec<Option<AttributeValue>>,
    /// The raw payload.
    pub payload: Vec<u8>,
    /// The byte range of each field in the payload; empty if the only field is the whole payload.
    pub fields: Vec<Option<Range<u64>>>,
}

impl Sample {
    /// Makes a sample of one field, without attributes.
    pub fn new(key: impl Into<Vec<u8>>, payload: Vec<u8>) -> Self {
        Self { key: key.into(), payload, ..Self::default() }
    }

    /// The approximate number of bytes of memory that it takes.
    pub(crate) fn memory_len(&self) -> u64 {
        let lists = size_of_val(self.attributes.as_slice()) + size_of_val(self.fields.as_slice());
        (size_of::<Self>() + self.key.len() + self.payload.len() + lists) as u64
    }
}

/// A sample whose payload is read while it is written. It is stored raw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamedSample {
    /// As in [`Sample`].
    pub key: Vec<u8>,
    /// As in [`Sample`].
    pub attributes: Vec<Option<AttributeValue>>,
    /// As in [`Sample`].
    pub fields: Vec<Option<Range<u64>>>,
    /// The length of the source in bytes.
    pub len: u64,
}
