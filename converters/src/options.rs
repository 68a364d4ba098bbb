//! The options of a conversion: the order of the samples, how they are stored, and what to do about bad ones.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use grainstore_format::{Alignment, ChunkSize, UnknownName, choice_of};
use grainstore_writer::{Compression, WriterOptions};

/// The order in which samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A random order.
    Shuffled {
        /// The seed of the order.
        seed: u64,
    },
    /// The order of the source.
    Source,
}

impl Order {
    /// The names of the orders.
    pub const NAMES: [&'static str; 2] = ["shuffled", "source"];
    const ALL: [Self; 2] = [Self::Shuffled { seed: 0 }, Self::Source];

    /// The same order; a shuffled one with this `seed`.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        match self {
            Self::Shuffled { .. } => Self::Shuffled { seed },
            Self::Source => Self::Source,
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Shuffled { .. } => Self::NAMES[0],
            Self::Source => Self::NAMES[1],
        })
    }
}

/// Parses an order by its name; a shuffled order has seed 0.
impl FromStr for Order {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        choice_of(name, &Self::NAMES, Self::ALL)
    }
}

/// What to do about a sample that cannot be read or understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBad {
    /// End the conversion.
    #[default]
    Stop,
    /// Skip it and list it.
    Skip,
}

/// What to do about the finished segments that an interrupted conversion left in `destination.partial`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnKept {
    /// Refuse to start, because they may be the work of hours.
    #[default]
    Refuse,
    /// Resume after them if source and options are the same. If there are none, start.
    Resume,
    /// Remove them and start over.
    Restart,
}

/// What to do about samples with the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// The conversion fails when a second one is found, which may be at its end.
    #[default]
    Error,
    /// The first in the source's order is packed, the others are skipped.
    First,
    /// The last is packed, the others are skipped.
    Last,
}

impl OnDuplicate {
    /// The names of the choices.
    pub const NAMES: [&'static str; 3] = ["error", "first", "last"];
    const ALL: [Self; 3] = [Self::Error, Self::First, Self::Last];
}

impl fmt::Display for OnDuplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::NAMES[*self as usize])
    }
}

impl FromStr for OnDuplicate {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        choice_of(name, &Self::NAMES, Self::ALL)
    }
}

/// How a dataset is packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertOptions {
    /// The order in which samples are stored.
    pub order: Order,
    /// The largest number of samples: the first ones of the order.
    pub limit: Option<u64>,
    /// What to do about a sample that cannot be read or understood.
    pub on_bad: OnBad,
    /// What to do about samples with the same key.
    pub on_duplicate: OnDuplicate,
    /// Whether a sample is skipped if one before it in the source has the same content: the same bytes in every field.
    /// Keys and attributes do not count. A dataset that the samples are added to counts as before them. Samples that `on_duplicate` skips are no reason to skip others.
    pub skip_same_content: bool,
    /// The options of the source as text. A conversion is resumed only if they are the same.
    /// [`SourceOptions::words`](grainstore_sources::SourceOptions::words) returns them.
    pub source_words: String,
    /// The seed of the dataset's key hash.
    pub seed: u64,
    /// Size of a chunk.
    pub chunk_size: ChunkSize,
    /// Where samples may start.
    pub alignment: Alignment,
    /// A segment is closed before a sample that would make its data longer than this many bytes.
    pub segment_size: u64,
    /// Whether samples are compressed.
    pub compression: Compression,
    /// Number of threads that read, and of threads that checksum and compress. It changes no byte of the result.
    pub jobs: Option<NonZeroUsize>,
    /// Whether an existing dataset is replaced, once the new one is complete.
    pub overwrite: bool,
    /// What to do about what an interrupted conversion left.
    pub on_kept: OnKept,
}

impl Default for ConvertOptions {
    /// Shuffled from seed 0, 256 KiB chunks, samples back to back, 4 GiB segments, stored raw, nothing replaced; stops
    /// at the first sample that cannot be read.
    fn default() -> Self {
        Self {
            order: Order::Shuffled { seed: 0 },
            limit: None,
            on_bad: OnBad::Stop,
            on_duplicate: OnDuplicate::Error,
            skip_same_content: false,
            source_words: String::new(),
            seed: 0,
            chunk_size: ChunkSize::DEFAULT,
            alignment: Alignment::PACKED,
            segment_size: WriterOptions::DEFAULT_SEGMENT_SIZE,
            compression: Compression::None,
            jobs: None,
            overwrite: false,
            on_kept: OnKept::Refuse,
        }
    }
}
