//! The three datasets that the claims name, and how a benchmark opens them.
#![expect(clippy::unwrap_used, reason = "a benchmark without its dataset fails, by panicking")]

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use grainstore_format::{BLOCK_LEN, round_up};
use grainstore_reader::plan::{Order, OrderChoice};
use grainstore_reader::{EpochOptions, IoChoice, Reader, ReaderOptions};

use crate::{Dataset, Fixture, Lengths, is_selected, scaled};

/// Samples of one of the sizes that the claims are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// 2,000,000 samples of 512 bytes.
    Tiny,
    /// 400,000 samples of 3,073 bytes: a label and a CIFAR image.
    Cifar,
    /// 40,000 samples of 40,000 to 180,000 bytes: about 110 KB, as ImageNet's.
    ImageNet,
}

impl Shape {
    /// From small to large.
    pub const ALL: [Self; 3] = [Self::Tiny, Self::Cifar, Self::ImageNet];

    /// Those of `shapes` that the command line selects.
    pub fn selected(shapes: &[Self]) -> impl Iterator<Item = Self> {
        shapes.iter().copied().filter(|shape| is_selected(shape.name()))
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "512B",
            Self::Cifar => "3KB",
            Self::ImageNet => "110KB",
        }
    }

    /// The fixture of the dataset; in a test run it has a hundredth of the samples.
    #[must_use]
    pub fn fixture(self) -> Fixture {
        let (samples, lengths) = match self {
            Self::Tiny => (2_000_000, Lengths::Same(512)),
            Self::Cifar => (400_000, Lengths::Same(3073)),
            Self::ImageNet => (40_000, Lengths::Between(40_000, 180_000)),
        };
        Fixture::noise(scaled(samples), lengths)
    }

    /// The dataset.
    #[must_use]
    pub fn dataset(self) -> Dataset {
        self.fixture().kept()
    }
}

/// A reader past the page cache, with the index in memory.
#[must_use]
pub fn open_direct(dataset: &Dataset) -> Reader {
    open_direct_at(&dataset.path())
}

/// The same, of the dataset at `path`.
///
/// # Panics
/// If it cannot be opened.
#[must_use]
pub fn open_direct_at(path: &Path) -> Reader {
    open(path, 0)
}

/// The same, with a cache of `cache_bytes` bytes.
///
/// # Panics
/// If it cannot be opened.
#[must_use]
pub fn open_direct_with_cache(dataset: &Dataset, cache_bytes: u64) -> Reader {
    open(&dataset.path(), cache_bytes)
}

/// An epoch of batches of 256 in this order.
#[must_use]
pub fn epoch_options(order: Order, epoch: u64) -> EpochOptions {
    let batch_size = NonZeroUsize::MIN.saturating_add(255);
    EpochOptions { order: OrderChoice::Fixed(order), seed: 7, epoch, batch_size, ..EpochOptions::default() }
}

/// The byte range of the index in the dataset's only segment.
#[must_use]
pub fn index_range(dataset: &grainstore_store::Dataset) -> Range<u64> {
    let data_end = dataset.segment_table().records().first().map_or(0, |record| record.data_end);
    let file_len = dataset.segments().first().map_or(0, |segment| segment.file_len());
    round_up(data_end, BLOCK_LEN)..file_len
}

fn open(path: &Path, cache_bytes: u64) -> Reader {
    let options = ReaderOptions { io: IoChoice::Direct, cache_bytes, ..ReaderOptions::default() };
    let reader = Reader::open(path, options).unwrap();
    reader.load().unwrap();
    reader.extents().unwrap();
    reader.notices().iter().for_each(|notice| crate::say(notice));
    reader
}
