//! A source without some of its attributes and fields, where the format's own reader cannot leave them out.

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use grainstore_format::{AttributeValue, Metadata, Schema, escape_bytes, to_usize};
use grainstore_writer::{Sample, StreamedSample};

use crate::numbering::taken_names;
use crate::{
    Bad, Blocks, Chosen, Description, Layout, Reach, RecordLocation, Remark, SampleReader, Source, SourceError,
    SourceSample,
};

struct Narrowed {
    source: Box<dyn Source>,
    description: Description,
    kept: Kept,
}

/// What stays: indexes of the source's attributes and fields.
#[derive(Clone)]
struct Kept {
    attributes: Vec<usize>,
    fields: Vec<usize>,
    field_count: usize,
    /// The name of the only field that stays.
    only_field: Option<String>,
}

/// The source without what is left out; itself where nothing is. The key stays in any case.
///
/// # Errors
/// Where a name is unknown, or no field is left.
pub(crate) fn narrowed(source: Box<dyn Source>, chosen: &Chosen) -> Result<Box<dyn Source>, SourceError> {
    if chosen.is_all() {
        return Ok(source);
    }
    let mut description = source.description().clone();
    let path = description.origins.first().cloned().unwrap_or_else(|| description.first_path());
    let refused = |why: String| SourceError::refused(&path, why);
    let schema = &description.metadata.schema;
    let attribute_names = schema.attributes().iter().map(|item| item.name.as_str());
    let field_names = schema.fields().iter().map(|item| item.name.as_str());
    chosen.check("attribute or field", attribute_names.clone().chain(field_names.clone())).map_err(refused)?;
    let numbers = |names: &mut dyn Iterator<Item = &str>| -> Vec<usize> {
        names.enumerate().filter(|(_, name)| chosen.takes([name, name])).map(|(number, _)| number).collect()
    };
    let attributes = numbers(&mut attribute_names.clone());
    let fields = numbers(&mut field_names.clone());
    if fields.is_empty() {
        return Err(refused("no field is left of the samples, and a dataset needs one".into()));
    }
    let field_count = schema.fields().len();
    let taken_attributes = attributes.iter().map(|&number| schema.attributes()[number].clone()).collect();
    let taken_fields: Vec<_> = fields.iter().map(|&number| schema.fields()[number].clone()).collect();
    let only_field = if let [field] = &taken_fields[..] { Some(field.name.clone()) } else { None };
    let taken_schema = Schema::new(taken_attributes, taken_fields)?;
    let from: Vec<Option<usize>> = attributes.iter().copied().map(Some).collect();
    let (user, left_out) = taken_names(&description.metadata.user, schema, (&taken_schema, &from)).map_err(refused)?;
    description.warnings.extend(left_out.into_iter().map(Remark::from));
    description.metadata = Metadata { schema: taken_schema, user };
    Ok(Box::new(Narrowed { source, description, kept: Kept { attributes, fields, field_count, only_field } }))
}

impl Source for Narrowed {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        self.source.blocks(part)
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        let samples = self.source.open(part, position, layout)?;
        let path = &self.description.parts[part].path;
        Ok(Box::new(NarrowedSamples { samples, path, kept: &self.kept, layout, pieces: Vec::new(), at: 0 }))
    }

    fn stamp(&self) -> u64 {
        self.source.stamp()
    }
}

struct NarrowedSamples<'a> {
    samples: Box<dyn SampleReader + 'a>,
    path: &'a Path,
    kept: &'a Kept,
    layout: Layout,
    /// What is taken of the payload of the last long sample, backwards.
    pieces: Vec<Range<u64>>,
    /// How much of it was read.
    at: u64,
}

/// What is taken of a payload: its pieces, which ascend, and the fields in what they are together.
struct Taken {
    pieces: Vec<Range<u64>>,
    fields: Vec<Option<Range<u64>>>,
}

impl Kept {
    fn attributes(&self, all: &mut Vec<Option<AttributeValue>>) {
        *all = self.attributes.iter().map(|&number| all.get_mut(number).and_then(Option::take)).collect();
    }

    /// `None` where the only field that stays is missing.
    fn payload(&self, layout: Layout, fields: &[Option<Range<u64>>], len: u64) -> Option<Taken> {
        if self.fields.len() == self.field_count {
            return Some(Taken { pieces: vec![0..len; 1], fields: fields.to_vec() });
        }
        let ranges: Vec<Option<Range<u64>>> =
            self.fields.iter().map(|&number| fields.get(number).cloned().flatten()).collect();
        if self.only_field.is_some() {
            let range = ranges.into_iter().next().flatten()?;
            return Some(Taken { pieces: vec![range; 1], fields: Vec::new() });
        }
        if layout == Layout::InPlace {
            return Some(Taken { pieces: vec![0..len; 1], fields: ranges });
        }
        let mut pieces: Vec<Range<u64>> = ranges.iter().flatten().cloned().collect();
        pieces.sort_unstable_by_key(|range| (range.start, range.end));
        pieces.dedup();
        let start_of = |range: Range<u64>| -> Range<u64> {
            let before: u64 =
                pieces.iter().take_while(|piece| **piece != range).map(|piece| piece.end - piece.start).sum();
            before..before + (range.end - range.start)
        };
        let fields = ranges.into_iter().map(|range| range.map(start_of)).collect();
        Some(Taken { pieces, fields })
    }
}

impl NarrowedSamples<'_> {
    fn missing(&self, key: &[u8]) -> Bad {
        let path = self.samples.file().unwrap_or_else(|| self.path.to_owned());
        let name = escape_bytes(self.kept.only_field.as_deref().unwrap_or_default().as_bytes());
        let why = format!("it has no \"{name}\", the only field, so nothing would be stored of it");
        Bad::new(&path, RecordLocation::of_key(key), why, Reach::Sample)
    }
}

impl SampleReader for NarrowedSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        (self.pieces, self.at) = (Vec::new(), 0);
        match self.samples.next()? {
            Some(SourceSample::Whole { mut sample, offset }) => {
                let taken = self.kept.payload(self.layout, &sample.fields, sample.payload.len() as u64);
                let taken = taken.ok_or_else(|| self.missing(&sample.key))?;
                self.kept.attributes(&mut sample.attributes);
                let start = taken.pieces.first().map_or(0, |piece| piece.start);
                let offset = if self.layout == Layout::InPlace { offset + start } else { offset };
                let bytes = |piece: &Range<u64>| sample.payload.get(to_usize(piece.start)..to_usize(piece.end));
                let payload = taken.pieces.iter().filter_map(bytes).collect::<Vec<_>>().concat();
                Ok(Some(SourceSample::Whole { sample: Sample { payload, fields: taken.fields, ..sample }, offset }))
            }
            Some(SourceSample::Long { mut sample, offset }) => {
                let taken = self.kept.payload(self.layout, &sample.fields, sample.len);
                let taken = taken.ok_or_else(|| self.missing(&sample.key))?;
                self.kept.attributes(&mut sample.attributes);
                let start = taken.pieces.first().map_or(0, |piece| piece.start);
                let offset = if self.layout == Layout::InPlace { offset + start } else { offset };
                let len = taken.pieces.iter().map(|piece| piece.end - piece.start).sum();
                self.pieces = taken.pieces.into_iter().rev().collect();
                Ok(Some(SourceSample::Long { sample: StreamedSample { len, fields: taken.fields, ..sample }, offset }))
            }
            others => Ok(others),
        }
    }

    fn ahead_len(&mut self) -> Option<u64> {
        self.samples.ahead_len()
    }

    fn file(&self) -> Option<PathBuf> {
        self.samples.file()
    }

    fn payload(&mut self) -> &mut dyn Read {
        self
    }
}

impl Read for NarrowedSamples<'_> {
    /// The pieces of the long payload. What is between them is read and dropped: a payload is a stream.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(piece) = self.pieces.last().cloned() {
            if self.at >= piece.end {
                self.pieces.pop();
                continue;
            }
            let source = self.samples.payload();
            if self.at < piece.start {
                let skipped = piece.start - self.at;
                let read = io::copy(&mut source.take(skipped), &mut io::sink())?;
                self.at += read;
                if read < skipped {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            let len = buffer.len().min(to_usize(piece.end - self.at));
            let read = source.read(&mut buffer[..len])?;
            self.at += read as u64;
            return Ok(read);
        }
        Ok(0)
    }
}
