//! Samples whose attributes are changed while they are read.

use std::io::Read;
use std::path::{Path, PathBuf};

use grainstore_format::AttributeValue;

use crate::{Bad, Reach, RecordLocation, SampleReader, SourceSample};

/// The samples of a part, whose file is `path`, after a change of their attributes. `change` gets the key of each, and its
/// attributes in the order of the schema; where it says why it cannot, the sample is bad.
pub fn with_changed_attributes<'a>(
    samples: Box<dyn SampleReader + 'a>,
    path: &'a Path,
    change: impl Fn(&[u8], &mut Vec<Option<AttributeValue>>) -> Result<(), String> + 'a,
) -> Box<dyn SampleReader + 'a> {
    Box::new(ChangedSamples { samples, path, change })
}

struct ChangedSamples<'a, C> {
    samples: Box<dyn SampleReader + 'a>,
    path: &'a Path,
    change: C,
}

impl<C> SampleReader for ChangedSamples<'_, C>
where
    C: Fn(&[u8], &mut Vec<Option<AttributeValue>>) -> Result<(), String>,
{
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        let mut item = self.samples.next()?;
        let (key, attributes) = match &mut item {
            Some(SourceSample::Whole { sample, .. }) => (&sample.key, &mut sample.attributes),
            Some(SourceSample::Long { sample, .. }) => (&sample.key, &mut sample.attributes),
            Some(SourceSample::LeftOut) | None => return Ok(item),
        };
        (self.change)(key, attributes).map_err(|why| {
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
