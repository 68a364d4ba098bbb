//! A source whose whole numbers have the types of the dataset that they are added to.
//!
//! A table says nothing of its types: a day whose scores are all whole numbers looks like one of integers. Each value is
//! taken over exactly, or its sample is bad.

use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_format::{Attribute, AttributeType, AttributeValue, Metadata, Schema, escape_bytes};
use grainstore_sources::{
    Bad, Blocks, Description, Layout, Reach, RecordLocation, SampleReader, Source, SourceError, SourceSample,
};
use grainstore_writer::StreamedSample;

pub(crate) struct Fitted<'a> {
    source: &'a dyn Source,
    description: Description,
    fits: Vec<Fit>,
}

/// An attribute whose values get another type.
struct Fit {
    attribute: usize,
    name: String,
    kind: AttributeType,
}

impl<'a> Fitted<'a> {
    /// Attributes of the same name get the type that they have in the dataset, where the source has whole numbers and the
    /// dataset numbers.
    ///
    /// # Errors
    /// If the schema is not legal.
    pub(crate) fn new(source: &'a dyn Source, dataset: &Schema) -> Result<Self, SourceError> {
        let described = source.description();
        let mut attributes = described.metadata.schema.attributes().to_vec();
        let mut fits = Vec::new();
        for (number, Attribute { name, kind }) in attributes.iter_mut().enumerate() {
            let Some(wanted) = dataset.attributes().iter().find(|attribute| attribute.name == *name) else { continue };
            if wanted.kind != *kind && kind.is_integer() && (wanted.kind.is_integer() || is_float(&wanted.kind)) {
                *kind = wanted.kind.clone();
                fits.push(Fit { attribute: number, name: name.clone(), kind: wanted.kind.clone() });
            }
        }
        let schema = Schema::new(attributes, described.metadata.schema.fields().to_vec())?;
        let metadata = Metadata { schema, user: described.metadata.user.clone() };
        Ok(Self { source, description: Description { metadata, ..described.clone() }, fits })
    }
}

impl Fit {
    fn apply(&self, attributes: &mut [Option<AttributeValue>]) -> Result<(), String> {
        let Some(Some(value)) = attributes.get_mut(self.attribute) else { return Ok(()) };
        let whole = match value {
            AttributeValue::Int(whole) => i128::from(*whole),
            AttributeValue::Uint(whole) => i128::from(*whole),
            _ => return Ok(()),
        };
        *value = self.kind.whole(whole).ok_or_else(|| {
            format!("its {} is {whole}, which {} cannot hold", escape_bytes(self.name.as_bytes()), self.kind.name())
        })?;
        Ok(())
    }
}

fn is_float(kind: &AttributeType) -> bool {
    matches!(kind, AttributeType::Float64 | AttributeType::Float32)
}

impl Source for Fitted<'_> {
    fn description(&self) -> &Description {
        &self.description
    }
    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        self.source.blocks(part)
    }
    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let samples = self.source.open(part, position, layout)?;
        if self.fits.is_empty() {
            return Ok(samples);
        }
        let path = &self.description.parts[part].path;
        Ok(Box::new(FittedSamples { samples, path, fits: &self.fits }))
    }
    fn stamp(&self) -> u64 {
        self.source.stamp()
    }
}

struct FittedSamples<'a> {
    samples: Box<dyn SampleReader + 'a>,
    path: &'a Path,
    fits: &'a [Fit],
}

impl SampleReader for FittedSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        let mut item = self.samples.next()?;
        let (key, attributes) = match &mut item {
            Some(SourceSample::Whole { sample, .. }) => (&sample.key, &mut sample.attributes),
            Some(SourceSample::Long { sample: StreamedSample { key, attributes, .. }, .. }) => (&*key, attributes),
            Some(SourceSample::LeftOut) | None => return Ok(item),
        };
        self.fits.iter().try_for_each(|fit| fit.apply(attributes)).map_err(|why| {
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
