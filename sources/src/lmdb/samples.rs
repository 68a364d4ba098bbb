//! Reads the samples of a range of keys.

use std::io::{self, Read};
use std::ops::Range;

use grainstore_writer::{Sample, StreamedSample};

use super::file::{DataFile, Fault, StoredValue};
use super::page::NodeContent;
use super::pattern::Pattern;
use super::shape::{DatumShape, Decoder};
use super::source::{Database, LmdbSource};
use super::tree::Entries;
use super::window::Window;
use crate::{Bad, Layout, Reach, SampleReader, SourceSample, WHOLE_LEN_MAX};

/// The samples of a range.
pub(super) struct LmdbSamples<'a> {
    source: &'a LmdbSource,
    database: &'a Database,
    entries: Entries<'a>,
    layout: Layout,
    long: Box<dyn Read + 'a>,
    has_ended: bool,
}

/// A sample, and a reader of its bytes if it is long.
type Streamed<'a> = (SourceSample, Box<dyn Read + 'a>);

/// Reads the sample of a key.
struct Reader<'a, 'k> {
    file: &'a DataFile,
    key: &'k [u8],
    layout: Layout,
    window: &'k mut Window,
}

impl<'a> LmdbSamples<'a> {
    pub(super) fn new(source: &'a LmdbSource, database: &'a Database, entries: Entries<'a>, layout: Layout) -> Self {
        Self { source, database, entries, layout, long: Box::new(io::empty()), has_ended: false }
    }

    fn read_next(&mut self) -> Result<Option<Streamed<'a>>, Bad> {
        let database = self.database;
        let path = self.database.file.path();
        while let Some((_, found)) = self.entries.next() {
            let mut found = found.map_err(|fault| fault.into_bad(path, None))?;
            let Some(key) = self.source.sample_key(&found.node) else { continue };
            let value = found.value();
            let mut reader = Reader { file: &database.file, key, layout: self.layout, window: found.window };
            let read = value.and_then(|value| match &self.source.shape().decoder {
                Decoder::Raw => reader.raw(value),
                Decoder::Datum(shape) => reader.datum(shape, value),
                Decoder::Joined(patterns) => reader.joined(database, patterns, value),
            });
            return read.map(Some).map_err(|fault| fault.into_bad(path, Some(found.node.key)));
        }
        database.file.check_unwritten().map_err(|fault| fault.into_bad(path, None))?;
        Ok(None)
    }
}

impl SampleReader for LmdbSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        if self.has_ended {
            return Ok(None);
        }
        let read = self.read_next();
        self.has_ended = match &read {
            Ok(read) => read.is_none(),
            Err(bad) => bad.reach == Reach::Rest,
        };
        let Some((item, long)) = read? else { return Ok(None) };
        self.long = long;
        Ok(Some(item))
    }

    fn payload(&mut self) -> &mut dyn Read {
        &mut self.long
    }
}

impl<'a> Reader<'a, '_> {
    fn raw(&mut self, value: StoredValue) -> Result<Streamed<'a>, Fault> {
        let offset = self.offset(value.offset);
        self.fetch(vec![value], Vec::new(), offset)
    }

    fn datum(&mut self, shape: &DatumShape, value: StoredValue) -> Result<Streamed<'a>, Fault> {
        let offset = value.offset;
        let len = value.len;
        if len > WHOLE_LEN_MAX {
            let why = format!("a Datum of {len} bytes, expected {WHOLE_LEN_MAX} at most; read its values raw");
            return Err(Fault::new(offset, why));
        }
        let bytes = self.file.read_value(value, self.window)?;
        let not_legal = |why| Fault::new(offset, format!("not a Datum that can be taken: {why}"));
        let decoded = shape.decode(&bytes).map_err(not_legal)?;
        let payload = decoded.payload(bytes, self.layout).map_err(not_legal)?;
        let attributes = decoded.attributes;
        let fields = payload.fields;
        let sample = Sample { key: self.key.to_vec(), attributes, payload: payload.bytes, fields };
        let offset = self.offset(offset + payload.start);
        Ok((SourceSample::Whole { sample, offset }, Box::new(io::empty())))
    }

    /// A sample of the values of all keys with the same bytes for `*`. The value of the first pattern is given, and its
    /// stem is the key.
    fn joined(&mut self, database: &Database, patterns: &[Pattern], first: StoredValue) -> Result<Streamed<'a>, Fault> {
        let offset = self.offset(first.offset);
        if patterns.len() == 1 {
            return self.fetch(vec![first], Vec::new(), offset);
        }
        let mut end = first.len;
        let mut fields = vec![Some(0..first.len)];
        let mut values = vec![first];
        for pattern in patterns.iter().skip(1) {
            let found = database.tree.find(&database.file, &pattern.key(self.key))?;
            let value =
                found.filter(|(content, _)| !matches!(content, NodeContent::Database(_))).map(|(_, value)| value);
            fields.push(value.as_ref().map(|value| end..end + value.len));
            end += value.as_ref().map_or(0, |value| value.len);
            values.extend(value);
        }
        self.fetch(values, fields, 0)
    }

    /// A sample of values, one after the other: in memory, or streamed where they are long.
    fn fetch(
        &mut self,
        values: Vec<StoredValue>,
        fields: Vec<Option<Range<u64>>>,
        offset: u64,
    ) -> Result<Streamed<'a>, Fault> {
        let key = self.key.to_vec();
        let len = values.iter().map(|value| value.len).sum();
        if len > WHOLE_LEN_MAX {
            let sample = StreamedSample { key, attributes: Vec::new(), fields, len };
            return Ok((SourceSample::Long { sample, offset }, Box::new(self.file.stream(values))));
        }
        let mut payload = Vec::new();
        for value in values {
            let bytes = self.file.read_value(value, self.window)?;
            if payload.is_empty() { payload = bytes } else { payload.extend_from_slice(&bytes) }
        }
        let sample = Sample { key, attributes: Vec::new(), payload, fields };
        Ok((SourceSample::Whole { sample, offset }, Box::new(io::empty())))
    }

    /// The offset of a payload in the file, for [`Layout::InPlace`]; else 0.
    fn offset(&self, in_file: u64) -> u64 {
        if self.layout == Layout::InPlace { in_file } else { 0 }
    }
}
