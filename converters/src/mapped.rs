//! A source whose samples pass through a function before they are packed.
//!
//! The function runs in the threads that read, many samples at a time; what is packed, and in which order, depends on
//! the source alone, because every sample keeps its place. A sample that the function leaves out keeps its place, too:
//! so an interrupted conversion finds where it stopped.

use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_format::Metadata;
use grainstore_sources::{
    Bad, Blocks, Description, Layout, Reach, RecordLocation, Remark, SampleReader, Source, SourceBlock, SourceSample,
};
use grainstore_writer::Sample;

/// A function of a sample.
pub trait MapSample: Send + Sync {
    /// The sample to pack in place of this one, with the schema of the result; `None` to leave it out. It must depend on
    /// the sample alone.
    ///
    /// # Errors
    /// Why there is none, in words that end a sentence.
    fn map(&self, sample: Sample) -> Result<Option<Sample>, Remark>;
}

/// The samples of a source after a function.
pub struct Mapped<'a> {
    source: &'a dyn Source,
    description: Description,
    function: &'a dyn MapSample,
    growth: u64,
}

impl<'a> Mapped<'a> {
    /// `metadata` is that of the results. A result is about `growth` times as long as its sample: memory is reserved
    /// for this.
    pub fn new(source: &'a dyn Source, metadata: Metadata, function: &'a dyn MapSample, growth: u64) -> Self {
        // A function may give two samples one key.
        let description =
            Description { metadata, has_distinct_keys: false, waits: true, ..source.description().clone() };
        Self { source, description, function, growth: growth.max(1) }
    }
}

impl Source for Mapped<'_> {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        let grown = |block: SourceBlock| SourceBlock { len: block.len.saturating_mul(self.growth), ..block };
        Ok(match self.source.blocks(part)? {
            Some(Blocks::Runs(blocks)) => Some(Blocks::Runs(blocks.into_iter().map(grown).collect())),
            blocks => blocks,
        })
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let samples = self.source.open(part, position, layout)?;
        let path = &self.description.parts[part].path;
        Ok(Box::new(MappedSamples { samples, path, function: self.function, growth: self.growth }))
    }

    fn stamp(&self) -> u64 {
        self.source.stamp()
    }
}

struct MappedSamples<'a> {
    samples: Box<dyn SampleReader + 'a>,
    path: &'a Path,
    function: &'a dyn MapSample,
    growth: u64,
}

impl MappedSamples<'_> {
    fn bad(&self, key: &[u8], why: Remark) -> Bad {
        let path = self.samples.file().unwrap_or_else(|| self.path.to_owned());
        Bad::new(&path, RecordLocation::of_key(key), why, Reach::Sample)
    }
}

impl SampleReader for MappedSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        match self.samples.next()? {
            Some(SourceSample::Whole { sample, .. }) => {
                let key = sample.key.clone();
                match self.function.map(sample) {
                    Ok(Some(sample)) => Ok(Some(SourceSample::Whole { sample, offset: 0 })),
                    Ok(None) => Ok(Some(SourceSample::LeftOut)),
                    Err(why) => Err(self.bad(&key, why)),
                }
            }
            Some(SourceSample::Long { sample, .. }) => {
                // Read to its end: only then the part continues.
                let _ = std::io::copy(self.samples.payload(), &mut std::io::sink());
                let why = format!(
                    "it has {} bytes, and a function gets samples of up to {} MiB",
                    sample.len,
                    grainstore_sources::WHOLE_LEN_MAX >> 20
                );
                Err(self.bad(&sample.key, why.into()))
            }
            others => Ok(others),
        }
    }

    fn ahead_len(&mut self) -> Option<u64> {
        Some(self.samples.ahead_len()?.saturating_mul(self.growth))
    }

    fn file(&self) -> Option<PathBuf> {
        self.samples.file()
    }

    fn payload(&mut self) -> &mut dyn Read {
        self.samples.payload()
    }
}
