//! TFRecord files: each record is a sample as a `tf.train.Example`, or, if the dataset holds the original records, the
//! original record.
//!
//! ```text
//! length u64 | masked CRC-32C of it u32 | record | masked CRC-32C of it u32
//! ```

use std::io::{self, BufWriter, Write};
use std::path::Path;

use grainstore_format::{AttributeType, Schema};
use grainstore_host::SteadyFile;

use crate::ExportError;
use crate::example::{self, Example};
use crate::fetch::ExportedSample;
use crate::index_pass;
use crate::job::ExportJob;
use crate::shards::{ShardWriter, Sharded};

/// The field of a dataset that holds the original records.
const RECORD: &str = "record";

/// The plan of a TFRecord export.
pub(crate) struct TfRecord {
    schema: Schema,
    is_raw: bool,
}

impl TfRecord {
    /// Checks all selected samples.
    pub(crate) fn plan(job: &ExportJob<'_>) -> Result<Self, ExportError> {
        let collection = job.collection();
        let schema = job.schema();
        let is_record = matches!(schema.fields(), [only] if only.name == RECORD);
        let is_raw = is_record && schema.attributes().is_empty() && !collection.is_keyed();
        let is_raw = is_raw && job.is_whole_payload();
        if is_raw {
            return Ok(Self { schema: schema.clone(), is_raw });
        }
        let names_key = schema.attribute(example::KEY).is_some() || schema.field(example::KEY).is_some();
        if names_key && collection.is_keyed() {
            let what = "an attribute or field is called \"key\": a tf.train.Example has the sample's key there";
            return Err(ExportError::Unfit { what: what.into() });
        }
        index_pass::each(job, |sample| example::check(schema, &sample))?;
        Ok(Self { schema: schema.clone(), is_raw })
    }
}

impl Sharded for TfRecord {
    fn begin<'a>(&'a self, file: SteadyFile, path: &'a Path) -> Result<Box<dyn ShardWriter + 'a>, ExportError> {
        Ok(Box::new(RecordWriter { format: self, out: BufWriter::with_capacity(1 << 20, file), path }))
    }

    fn notes(&self) -> Vec<String> {
        let is_bool = |attribute: &grainstore_format::Attribute| attribute.kind == AttributeType::Bool;
        let note = "a tf.train.Example has no bools: they are int64 features of 0 or 1";
        self.schema.attributes().iter().any(is_bool).then(|| note.to_owned()).into_iter().collect()
    }
}

/// Writes one file.
struct RecordWriter<'a> {
    format: &'a TfRecord,
    out: BufWriter<SteadyFile>,
    path: &'a Path,
}

impl RecordWriter<'_> {
    fn write_sample(&mut self, sample: &mut ExportedSample<'_>) -> io::Result<()> {
        let facts = sample.facts;
        if self.format.is_raw {
            let whole = 0..facts.payload_len;
            return framed(&mut self.out, facts.payload_len, |out| sample.payload.copy(&whole, out));
        }
        let example = Example::of(&self.format.schema, facts, &mut sample.payload, true)?;
        framed(&mut self.out, example.len(), |out| example.write(&mut sample.payload, out))
    }
}

impl ShardWriter for RecordWriter<'_> {
    fn write(&mut self, sample: &mut ExportedSample<'_>) -> Result<(), ExportError> {
        self.write_sample(sample).map_err(ExportError::io("write it", self.path))
    }

    fn finish(mut self: Box<Self>) -> Result<(), ExportError> {
        let flushed = self.out.flush();
        flushed.and_then(|()| self.out.get_mut().sync()).map_err(ExportError::io("write it", self.path))
    }
}

/// Writes a record of `len` bytes between its length and its checksums.
fn framed(out: &mut dyn Write, len: u64, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let head = len.to_le_bytes();
    out.write_all(&head)?;
    out.write_all(&masked(crc32c::crc32c(&head)).to_le_bytes())?;
    let mut summed = Summed { out, crc: 0 };
    write(&mut summed)?;
    let crc = summed.crc;
    out.write_all(&masked(crc).to_le_bytes())
}

/// Masks a checksum, so that bytes that contain CRCs do not get a trivial CRC.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Computes the checksum of the bytes that pass through.
struct Summed<'a> {
    out: &'a mut dyn Write,
    crc: u32,
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(bytes)?;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
