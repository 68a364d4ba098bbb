//! Datasets from a seed, written to a directory that is removed with them.
#![expect(clippy::unwrap_used, reason = "a benchmark without its dataset fails, by panicking")]

use std::path::{Path, PathBuf};

use grainstore_format::to_usize;
use grainstore_writer::{Compression, DatasetWriter, Sample, Summary, WriterOptions};
use tempfile::TempDir;

use crate::Random;

/// What payloads are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filling {
    /// Bytes that nothing compresses.
    Noise,
    /// 64 bytes of noise, 64 bytes of one value, and so on: LZ4 about halves it.
    Half,
}

/// A dataset to be made: samples of one length, each from the seed and its ordinal. Keys are `sample-ORDINAL`.
#[derive(Debug, Clone, Copy)]
pub struct Fixture {
    /// Samples.
    pub samples: u64,
    /// Bytes a payload.
    pub payload_len: u64,
    /// What payloads are made of.
    pub filling: Filling,
    /// Whether samples are compressed.
    pub compression: Compression,
    /// Of the payloads.
    pub seed: u64,
}

/// A dataset on disk. It goes when this does.
#[derive(Debug)]
pub struct Dataset {
    fixture: Fixture,
    directory: TempDir,
}

/// A directory for datasets: in `GRAINSTORE_BENCH_DIR`, or where temporary files are.
///
/// # Panics
/// Where none can be made.
#[must_use]
pub fn directory() -> TempDir {
    let parent = std::env::var_os("GRAINSTORE_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::Builder::new().prefix("grainstore-bench-").tempdir_in(parent).unwrap()
}

impl Fixture {
    /// Bytes of all payloads.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.samples * self.payload_len
    }

    /// The key of a sample.
    #[must_use]
    pub fn key(ordinal: u64) -> Vec<u8> {
        format!("sample-{ordinal}").into_bytes()
    }

    /// The payload of a sample.
    #[must_use]
    pub fn payload(&self, ordinal: u64) -> Vec<u8> {
        let mut payload = vec![0; to_usize(self.payload_len)];
        // One step apart on the generator's walk would be the same noise, shifted.
        let mut random = Random::new(Random::new(self.seed ^ ordinal << 20).next_u64());
        match self.filling {
            Filling::Noise => random.fill(&mut payload),
            Filling::Half => payload.chunks_mut(64).step_by(2).for_each(|part| random.fill(part)),
        }
        payload
    }

    /// All samples, in memory.
    #[must_use]
    pub fn in_memory(&self) -> Vec<Sample> {
        (0..self.samples).map(|ordinal| self.sample(ordinal)).collect()
    }

    /// Writes the dataset.
    ///
    /// # Panics
    /// Where it cannot be written.
    #[must_use]
    pub fn build(&self) -> Dataset {
        let directory = directory();
        let summary = self.write(&directory.path().join(Dataset::NAME), (0..self.samples).map(|i| self.sample(i)));
        assert_eq!((summary.samples, summary.payload_bytes), (self.samples, self.payload_bytes()));
        Dataset { fixture: *self, directory }
    }

    /// Writes `samples` as the dataset `target`.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn write(&self, target: &Path, samples: impl IntoIterator<Item = Sample>) -> Summary {
        let options = WriterOptions { compression: self.compression, ..WriterOptions::default() };
        let mut writer = DatasetWriter::create(target, options).unwrap();
        samples.into_iter().for_each(|sample| writer.write(sample).unwrap());
        writer.finish().unwrap()
    }

    fn sample(&self, ordinal: u64) -> Sample {
        Sample::new(Self::key(ordinal), self.payload(ordinal))
    }
}

impl Dataset {
    const NAME: &str = "bench.grain";

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path().join(Self::NAME)
    }

    /// What it was made from.
    #[must_use]
    pub fn fixture(&self) -> &Fixture {
        &self.fixture
    }
}
