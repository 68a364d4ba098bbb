//! The size of the experiment.

use crate::data::FEATURES;

/// Bytes of a sample.
pub(crate) const SAMPLE_LEN: u64 = (FEATURES * size_of::<f32>()) as u64;

/// Sizes and numbers of the experiment.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    /// Classes that the network learns to separate.
    pub(crate) classes: usize,
    /// Samples of a class to train from.
    pub(crate) samples_per_class: usize,
    /// Samples of a class to test with.
    pub(crate) tests_per_class: usize,
    /// Bytes of a chunk.
    pub(crate) chunk_size: u64,
    /// Epochs of a training.
    pub(crate) epochs: u64,
    /// Trainings in each order.
    pub(crate) seeds: u64,
    /// Samples of the dataset of the mixing table.
    pub(crate) mixing_samples: u64,
}

impl Scale {
    /// 100,000 samples of 512 bytes in 1,564 chunks: windows from one chunk to half the dataset. A chunk of 256 KiB
    /// would do for a dataset eight times as large, and for the same figures.
    pub(crate) const WHOLE: Self = Self {
        classes: 100,
        samples_per_class: 1000,
        tests_per_class: 100,
        chunk_size: 32 << 10,
        epochs: 3,
        seeds: 5,
        mixing_samples: 1_281_167,
    };

    /// A tiny experiment, to check that it works.
    pub(crate) const QUICK: Self = Self {
        classes: 10,
        samples_per_class: 200,
        tests_per_class: 20,
        chunk_size: 4 << 10,
        epochs: 1,
        seeds: 2,
        mixing_samples: 20_000,
    };

    /// Samples to train from.
    pub(crate) fn samples(&self) -> usize {
        self.classes * self.samples_per_class
    }

    /// Samples of a chunk.
    pub(crate) fn samples_per_chunk(&self) -> u64 {
        self.chunk_size / SAMPLE_LEN
    }

    /// Chunks of the dataset, except the one that contains the header.
    pub(crate) fn chunks(&self) -> u64 {
        self.samples() as u64 / self.samples_per_chunk()
    }
}
