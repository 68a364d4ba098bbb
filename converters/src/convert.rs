//! Packs a source into a dataset.

use std::num::NonZeroUsize;
use std::path::Path;

use grainstore_format::{Alignment, ChunkSize, Geometry};
use grainstore_writer::{Compression, DatasetWriter, Summary, WriterOptions};

use crate::{ConvertError, Events, Sink, Skipped, Source, check_destination, hash_seed};

/// How a dataset is packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertOptions {
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
    /// Threads that checksum and compress; all cores where `None`. It changes no byte of the result.
    pub jobs: Option<NonZeroUsize>,
    /// Whether a dataset that stands under the name already is replaced, once the new one is whole.
    pub overwrite: bool,
}

impl Default for ConvertOptions {
    /// Seed 0, 256 KiB chunks, samples back to back, 4 GiB segments, stored raw, nothing replaced.
    fn default() -> Self {
        Self {
            seed: 0,
            chunk_size: ChunkSize::DEFAULT,
            alignment: Alignment::Packed,
            segment_size: WriterOptions::DEFAULT_SEGMENT_SIZE,
            compression: Compression::None,
            jobs: None,
            overwrite: false,
        }
    }
}

impl ConvertOptions {
    fn for_writer(&self, source: &dyn Source) -> WriterOptions {
        let hash_seed = hash_seed(self.seed);
        WriterOptions {
            geometry: Geometry { chunk_size: self.chunk_size, alignment: self.alignment, hash_seed },
            segment_size: self.segment_size,
            compression: self.compression,
            keyed: source.is_keyed(),
            jobs: self.jobs,
            overwrite: self.overwrite,
            ..WriterOptions::with_metadata(source.metadata().clone())
        }
    }
}

/// What was packed, and what was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertSummary {
    /// What the writer wrote.
    pub written: Summary,
    /// What was left out because it cannot be read, in the order of the source.
    pub skipped: Vec<Skipped>,
}

/// Packs all samples of `source` into the dataset `destination`, which appears when it is whole and durable.
///
/// # Errors
/// Where the source cannot be read, the dataset cannot be written, one lies inside the other, or `events` stops it.
/// Then everything that was written is removed again, and a dataset that was to be replaced stands as before.
pub fn convert(
    source: &mut dyn Source,
    destination: &Path,
    options: &ConvertOptions,
    events: &dyn Events,
) -> Result<ConvertSummary, ConvertError> {
    check_destination(source.origin(), destination, options.overwrite)?;
    let mut writer = DatasetWriter::create(destination, options.for_writer(source))?;
    let mut sink = Sink::new(&mut writer, events);
    source.write_into(&mut sink)?;
    sink.check()?;
    let skipped = sink.into_skipped();
    if writer.taken() == 0 && !skipped.is_empty() {
        let (path, count) = (source.origin().to_path_buf(), skipped.len() as u64);
        return Err(ConvertError::NothingReadable { path, count });
    }
    events.on_finish();
    Ok(ConvertSummary { written: writer.finish()?, skipped })
}
