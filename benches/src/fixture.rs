//! Datasets from a seed, written to a directory that is removed with them, or kept for the next run.
#![expect(clippy::unwrap_used, reason = "a benchmark without its dataset fails, by panicking")]

use std::path::{Path, PathBuf};

use grainstore_format::to_usize;
use grainstore_writer::{Compression, DatasetWriter, Sample, Summary, WriterOptions};
use tempfile::TempDir;

use crate::{Random, is_test_run};

/// One segment, so that `fio` finds all samples in one file.
const SEGMENT_SIZE: u64 = 8 << 40;

/// The contents of payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filling {
    /// Bytes that nothing compresses.
    Noise,
    /// 64 bytes of noise, 64 bytes of one value, and so on: LZ4 about halves it.
    Half,
}

/// The lengths of payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// All have this length.
    Same(u64),
    /// Each of these lengths is equally likely, including both ends.
    Between(u64, u64),
}

/// The description of a dataset: its samples depend on the seed and their ordinals. Keys are `sample-ORDINAL`.
#[derive(Debug, Clone, Copy)]
pub struct Fixture {
    /// Samples.
    pub samples: u64,
    /// Bytes a payload.
    pub lengths: Lengths,
    /// The contents of payloads.
    pub filling: Filling,
    /// Whether samples are compressed.
    pub compression: Compression,
    /// Whether samples have keys.
    pub keyed: bool,
    /// Of the payloads.
    pub seed: u64,
}

/// A dataset on disk. It is removed when this is dropped, unless it is kept.
#[derive(Debug)]
pub struct Dataset {
    fixture: Fixture,
    path: PathBuf,
    _directory: Option<TempDir>,
}

/// A directory for datasets: in `GRAINSTORE_BENCH_DIR`, or where temporary files are.
///
/// # Panics
/// If none can be created.
#[must_use]
pub fn directory() -> TempDir {
    let parent = kept_directory().unwrap_or_else(std::env::temp_dir);
    tempfile::Builder::new().prefix("grainstore-bench-").tempdir_in(parent).unwrap()
}

impl Fixture {
    /// Samples with keys, of bytes that nothing compresses.
    #[must_use]
    pub fn noise(samples: u64, lengths: Lengths) -> Self {
        Self { samples, lengths, filling: Filling::Noise, compression: Compression::None, keyed: true, seed: 7 }
    }

    /// Bytes of all payloads.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        match self.lengths {
            Lengths::Same(len) => self.samples * len,
            Lengths::Between(..) => (0..self.samples).map(|ordinal| self.payload_len(ordinal)).sum(),
        }
    }

    /// Bytes of a payload, in the mean.
    #[must_use]
    pub fn mean_len(&self) -> u64 {
        self.payload_bytes() / self.samples
    }

    /// Bytes of a sample's payload.
    #[must_use]
    pub fn payload_len(&self, ordinal: u64) -> u64 {
        match self.lengths {
            Lengths::Same(len) => len,
            Lengths::Between(least, most) => least + Random::new(self.seed ^ ordinal << 24).below(most - least + 1),
        }
    }

    /// The key of a sample.
    #[must_use]
    pub fn key(ordinal: u64) -> Vec<u8> {
        format!("sample-{ordinal}").into_bytes()
    }

    /// The payload of a sample.
    #[must_use]
    pub fn payload(&self, ordinal: u64) -> Vec<u8> {
        let mut payload = vec![0; to_usize(self.payload_len(ordinal))];
        // Seeds that are one step of the generator apart would give the same noise, shifted.
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

    /// Writes the dataset, which is removed when the returned value is dropped.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn build(&self) -> Dataset {
        let directory = directory();
        let path = directory.path().join("bench.grain");
        self.write_all(&path);
        Dataset { fixture: *self, path, _directory: Some(directory) }
    }

    /// The dataset that an earlier run left in `GRAINSTORE_BENCH_DIR`; otherwise it is written there and kept. If that
    /// is not set, and in a test run, the dataset is removed when the returned value is dropped.
    ///
    /// # Panics
    /// If it cannot be written, or another dataset is at its path.
    #[must_use]
    pub fn kept(&self) -> Dataset {
        let Some(parent) = kept_directory().filter(|_| !is_test_run()) else { return self.build() };
        let path = parent.join(self.file_name());
        if !path.exists() {
            crate::say(&format!("writing {}", path.display()));
            self.write_all(&path);
        }
        let found = grainstore_store::Dataset::open(&path).unwrap();
        assert_eq!((found.sample_count(), found.is_keyed()), (self.samples, self.keyed), "{}", path.display());
        Dataset { fixture: *self, path, _directory: None }
    }

    /// Writes `samples` as the dataset `target`.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, target: &Path, samples: impl IntoIterator<Item = Sample>) -> Summary {
        let options = WriterOptions {
            compression: self.compression,
            keyed: self.keyed,
            segment_size: SEGMENT_SIZE,
            ..WriterOptions::default()
        };
        let mut writer = DatasetWriter::create(target, options).unwrap();
        samples.into_iter().for_each(|sample| writer.write(sample).unwrap());
        writer.finish().unwrap()
    }

    fn write_all(&self, target: &Path) {
        let summary = self.write(target, (0..self.samples).map(|ordinal| self.sample(ordinal)));
        assert_eq!((summary.samples, summary.payload_bytes), (self.samples, self.payload_bytes()));
    }

    fn sample(&self, ordinal: u64) -> Sample {
        let key = if self.keyed { Self::key(ordinal) } else { Vec::new() };
        Sample::new(key, self.payload(ordinal))
    }

    /// Everything that the bytes depend on, as text.
    fn file_name(&self) -> String {
        let lengths = match self.lengths {
            Lengths::Same(len) => len.to_string(),
            Lengths::Between(least, most) => format!("{least}-{most}"),
        };
        let Self { samples, filling, compression, seed, .. } = self;
        let keys = if self.keyed { "keyed" } else { "keyless" };
        format!("bench-{samples}x{lengths}-{filling:?}-{compression:?}-{keys}-seed{seed}.grain").to_lowercase()
    }
}

impl Dataset {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Its description.
    #[must_use]
    pub fn fixture(&self) -> &Fixture {
        &self.fixture
    }
}

fn kept_directory() -> Option<PathBuf> {
    std::env::var_os("GRAINSTORE_BENCH_DIR").map(PathBuf::from)
}
