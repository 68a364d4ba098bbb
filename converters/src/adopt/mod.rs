//! Makes a dataset of files that stay where they are: it writes an index and copies nothing.
//!
//! ```text
//! one file:       threads read ahead -- samples in order --> its rows --> 00000.idx
//! several files:  a thread each      -- samples in order --> its rows --> 0000N.idx
//! ```
//! A row is a sample without its bytes: their byte range and their checksum. Where the samples of a file do not come in
//! the order of their bytes, its rows are collected and sorted first.

mod adoption;
mod files;
mod rows;

use std::num::NonZeroUsize;
use std::path::Path;

use adoption::Adoption;
use files::AdoptedFiles;
use grainstore_format::{Alignment, ChunkSize, Geometry};
use grainstore_sources::{Skipped, Source};
use grainstore_writer::{ExternalWriter, FinishedExternal, Summary, WriterOptions};

use crate::{ConvertError, Events, OnBad, check_destination, hash_seed};

/// How files are adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptOptions {
    /// The seed of the dataset's key hash.
    pub seed: u64,
    /// The unit that epochs read in.
    pub chunk_size: ChunkSize,
    /// What to do about a sample that cannot be read or understood.
    pub on_bad: OnBad,
    /// Whether files may be outside the folder that the dataset is in.
    pub allow_external: bool,
    /// Threads that read; one for each core where `None`.
    pub jobs: Option<NonZeroUsize>,
    /// Whether an existing dataset is replaced, once the new one is complete.
    pub overwrite: bool,
}

impl Default for AdoptOptions {
    /// Seed 0, 256 KiB chunks, files beside the dataset, nothing replaced; stops at the first bad sample.
    fn default() -> Self {
        Self {
            seed: 0,
            chunk_size: ChunkSize::DEFAULT,
            on_bad: OnBad::Stop,
            allow_external: false,
            jobs: None,
            overwrite: false,
        }
    }
}

/// What was adopted, and what was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptSummary {
    /// What the writer wrote.
    pub written: Summary,
    /// Samples that cannot be read and were skipped, in the order of the source.
    pub skipped: Vec<Skipped>,
}

/// Makes the dataset `destination` from the samples of `source`, which stay where they are. They are read once, for
/// their checksums.
///
/// # Errors
/// Where samples are not byte ranges of the source's files; where a file is outside the destination's folder, is not a
/// regular file or is written to meanwhile; and as [`convert`](crate::convert). Nothing is left on disk then.
pub fn adopt(
    source: &dyn Source,
    destination: &Path,
    options: &AdoptOptions,
    events: &dyn Events,
) -> Result<AdoptSummary, ConvertError> {
    for origin in &source.description().origins {
        check_destination(origin, destination, options.overwrite)?;
    }
    let first = source.description().first_path();
    if let Some(why) = source.description().not_adoptable.clone() {
        return Err(ConvertError::Refused { path: first, why: why.after("it cannot be adopted: ") });
    }
    let AdoptedFiles { files, mut skipped } = AdoptedFiles::of(source, destination, options)?;
    let writer = ExternalWriter::create(destination, options.for_writer(source))?;
    let adopted = Adoption::new(source, &writer, options).adopt(&files, events)?;
    let (finished, skipped_by_file): (Vec<_>, Vec<_>) = adopted.into_iter().unzip();
    skipped.extend(skipped_by_file.into_iter().flatten());
    let finished: Vec<FinishedExternal> = finished.into_iter().flatten().collect();
    if finished.is_empty() && !skipped.is_empty() {
        return Err(ConvertError::NothingReadable { path: first, count: skipped.len() as u64 });
    }
    events.on_finish();
    Ok(AdoptSummary { written: writer.finish(finished)?, skipped })
}

impl AdoptOptions {
    fn for_writer(&self, source: &dyn Source) -> WriterOptions {
        let hash_seed = hash_seed(self.seed);
        WriterOptions {
            geometry: Geometry { chunk_size: self.chunk_size, alignment: Alignment::PACKED, hash_seed },
            keyed: source.description().is_keyed,
            jobs: self.jobs,
            overwrite: self.overwrite,
            ..WriterOptions::with_metadata(source.description().metadata.clone())
        }
    }
}
