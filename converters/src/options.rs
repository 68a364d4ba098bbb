//! What the caller of a conversion decides: which order, which options, and what to do about exceptions.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use grainstore_format::{Alignment, ChunkSize, UnknownName, choice_of};
use grainstore_writer::{Compression, WriterOptions};

/// The order in which samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// An order drawn from the seed.
    Shuffled {
        /// Where the order is drawn from.
        seed: u64,
    },
    /// That of the source.
    Source,
}

impl Order {
    /// The names of the orders.
    pub const NAMES: [&'static str; 2] = ["shuffled", "source"];
    const ALL: [Self; 2] = [Self::Shuffled { seed: 0 }, Self::Source];

    /// The same order, drawn from `seed` where it is drawn.
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

/// An order by its name; one that is drawn is drawn from seed 0.
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
    /// Refuse to start: they may be the work of hours.
    #[default]
    Refuse,
    /// Resume after them, where source and options are the same. Where there are none, start.
    Resume,
    /// Remove them and start over.
    Restart,
}

/// What to do about samples with the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// The conversion fails when the second one is found, which may be at its end.
    #[default]
    Error,
    /// The first of the source's order is kept.
    First,
    /// The last is kept.
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
    /// Number of samples at most: the first of the order.
    pub limit: Option<u64>,
    /// What to do about a sample that cannot be read or understood.
    pub on_bad: OnBad,
    /// What to do about samples with the same key.
    pub on_duplicate: OnDuplicate,
    /// What the source was told beside its paths, in words that differ where it differs: a conversion is resumed only
    /// where they are the same. [`SourceOptions::words`](grainstore_sources::SourceOptions::words) gives them.
    pub source_words: String,
    /// The seed that the dataset's key hash is drawn from.
    pub seed: u64,
    /// Size of a chunk.
    pub chunk_size: ChunkSize,
    /// Where samples may start.
    pub alignment: Alignment,
    /// A segment is closed before a sample that would make its data longer than this many bytes.
    pub segment_size: u64,
    /// Whether samples are compressed.
    pub compression: Compression,
    /// Threads that read, and threads that checksum and compress. It changes no byte of the result.
    pub jobs: Option<NonZeroUsize>,
    /// Whether a dataset that stands under the name already is replaced, once the new one is whole.
    pub overwrite: bool,
    /// What to do about what an interrupted conversion left.
    pub on_kept: OnKept,
}

impl Default for ConvertOptions {
    /// Shuffled from seed 0, 256 KiB chunks, samples back to back, 4 GiB segments, stored raw, nothing replaced; stops at the
    /// first sample that cannot be read.
    fn default() -> Self {
        Self {
            order: Order::Shuffled { seed: 0 },
            limit: None,
            on_bad: OnBad::Stop,
            on_duplicate: OnDuplicate::Error,
            source_words: String::new(),
            seed: 0,
            chunk_size: ChunkSize::DEFAULT,
            alignment: Alignment::Packed,
            segment_size: WriterOptions::DEFAULT_SEGMENT_SIZE,
            compression: Compression::None,
            jobs: None,
            overwrite: false,
            on_kept: OnKept::Refuse,
        }
    }
}
