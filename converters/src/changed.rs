//! A source whose samples get other values of attributes before they are packed.

use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_format::{AttributeValue, Metadata};
use grainstore_sources::{Bad, Blocks, Description, Layout, Reach, RecordLocation, SampleReader, Source, SourceSample};
use grainstore_writer::StreamedSample;

/// A change of a sample's attributes.
pub(crate) trait ChangeAttributes: Send + Sync {
    /// Changes them, in the order of the schema.
    ///
    /// # Errors
    /// Why it cannot: the sample is bad.
    fn change(&self, attributes: &mut [Option<AttributeValue>]) -> Result<(), String>;
}

/// A source and the changes of its samples, in order.
pub(crate) struct Changed<'a, C> {
    source: &'a dyn Source,
    description: Description,
    changes: Vec<C>,
}

impl<'a, C: ChangeAttributes> Changed<'a, C> {
    /// `metadata` is that of the changed samples.
    pub(crate) fn new(source: &'a dyn Source, metadata: Metadata, changes: Vec<C>) -> Self {
        Self { source, description: Description { metadata, ..source.description().clone() }, changes }
    }
}

impl<C: ChangeAttributes> Source for Changed<'_, C> {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        self.source.blocks(part)
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let samples = self.source.open(part, position, layout)?;
        if self.changes.is_empty() {
            return Ok(samples);
        }
        let path = &self.description.parts[part].path;
        Ok(Box::new(ChangedSamples { samples, path, changes: &self.changes }))
    }

    fn stamp(&self) -> u64 {
        self.source.stamp()
    }
}

struct ChangedSamples<'a, C> {
    samples: Box<dyn SampleReader + 'a>,
    path: &'a Path,
    changes: &'a [C],
}

impl<C: ChangeAttributes> SampleReader for ChangedSamples<'_, C> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        let mut item = self.samples.next()?;
        let (key, attributes) = match &mut item {
            Some(SourceSample::Whole { sample, .. }) => (&sample.key, &mut sample.attributes),
            Some(SourceSample::Long { sample: StreamedSample { key, attributes, .. }, .. }) => (&*key, attributes),
            Some(SourceSample::LeftOut) | None => return Ok(item),
        };
        self.changes.iter().try_for_each(|change| change.change(attributes)).map_err(|why| {
            let path = self.samples.file().unwrap_or_else(|| self.path.to_owned());
            Bad::new(&path, RecordLocation::of_key(key), why, Reach::Sample)
        })?;
        Ok(item)
    }

    fn ahead_len(&mut self) -> Option<u64> {
        self.samples.ahead_len()
    }

    fn file(&self) -> Option<PathBuf> {
        self.samples.file()
    }

    fn payload(&mut self) -> &mut dyn Read {
        self.samples.payload()
    }
}
