//! Tar archives for WebDataset: a member for each field, `.cls` for the label, `.json` for other attributes.
//!
//! Headers are GNU's; a name of more than 100 bytes is stored in an extra member (type `L`) before its own. Time, owner
//! and mode are always the same, so the archive's bytes depend on the samples alone.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use ::tar::{EntryType, Header};
use grainstore_format::AttributeValue;
use grainstore_host::SteadyFile;

use crate::ExportError;
use crate::fetch::ExportedSample;
use crate::grouping::Grouping;
use crate::job::ExportJob;
use crate::names::{NameCheck, Naming, Style};
use crate::shards::{ShardWriter, Sharded};
use crate::{index_pass, json};

/// The length of a block; the archive is a sequence of blocks.
const BLOCK_LEN: usize = 512;
/// The longest name that a header holds.
const NAME_LEN: usize = 100;
/// The name that GNU gives a member which holds the name of the next one.
const LONG_NAME: &[u8] = b"././@LongLink";
/// Two blocks of zeros end an archive.
static ZEROS: [u8; 2 * BLOCK_LEN] = [0; 2 * BLOCK_LEN];

/// The plan of a tar export: how members are named, and what the user should know.
pub(crate) struct Tar {
    naming: Naming,
    attribute_names: Vec<String>,
    /// The number of the attribute that is written as the member `.cls`.
    label: Option<usize>,
    json_suffix: &'static str,
    notes: Vec<String>,
}

impl Tar {
    /// Checks all selected samples.
    pub(crate) fn plan(job: &ExportJob<'_>) -> Result<Self, ExportError> {
        let schema = job.schema();
        let is_integer = |position: &usize| {
            schema.attributes().get(*position).is_some_and(|attribute| attribute.kind.name().contains("int"))
        };
        let mut tar = Self {
            naming: Naming::new(job, Style::Tar)?,
            attribute_names: schema.attributes().iter().map(|attribute| attribute.name.clone()).collect(),
            label: schema.attribute("label").filter(is_integer).filter(|_| schema.field("cls").is_none()),
            json_suffix: if schema.field("json").is_none() { ".json" } else { ".attributes.json" },
            notes: Vec::new(),
        };
        if schema.field("json").is_some() && schema.field("attributes.json").is_some() {
            let what = "fields \"json\" and \"attributes.json\": there is no name left for the attributes' member";
            return Err(ExportError::Unfit { what: what.into() });
        }
        let extras = tar.extras();
        let mut names = NameCheck::new(job, &tar.naming);
        let mut grouping = Grouping::new(job, schema.fields().len() + extras.len());
        index_pass::each(job, |sample| {
            names.look(&sample, &extras)?;
            let stem = tar.naming.stem(sample.ordinal, sample.key.as_deref());
            grouping.look(&sample, &tar.naming.file(&stem, 0))?;
            json::check(schema.attributes(), &sample)
        })?;
        names.finish(&extras)?;
        tar.notes = grouping.finish()?;
        Ok(tar)
    }

    /// The suffixes of members that do not belong to a field.
    fn extras(&self) -> Vec<&'static str> {
        let has_others = self.attribute_names.len() > usize::from(self.label.is_some());
        self.label.map(|_| ".cls").into_iter().chain(has_others.then_some(self.json_suffix)).collect()
    }

    /// The attributes except the label, as a JSON object; `None` if there are none.
    fn attributes(&self, values: &[Option<AttributeValue>]) -> io::Result<Option<String>> {
        let mut members = Vec::new();
        for (position, (name, value)) in self.attribute_names.iter().zip(values).enumerate() {
            if let Some(value) = value
                && Some(position) != self.label
            {
                members.push((name.as_str(), json::accepted(value)?));
            }
        }
        Ok((!members.is_empty()).then(|| json::object(members.into_iter())))
    }
}

impl Sharded for Tar {
    fn begin<'a>(&'a self, file: SteadyFile, path: &'a Path) -> Result<Box<dyn ShardWriter + 'a>, ExportError> {
        Ok(Box::new(TarWriter { tar: self, out: BufWriter::with_capacity(1 << 20, file), path }))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// Writes one archive.
struct TarWriter<'a> {
    tar: &'a Tar,
    out: BufWriter<SteadyFile>,
    path: &'a Path,
}

impl TarWriter<'_> {
    fn write_sample(&mut self, sample: &mut ExportedSample<'_>) -> io::Result<()> {
        let facts = sample.facts;
        let stem = self.tar.naming.stem(facts.ordinal, facts.key.as_deref());
        for (number, range) in facts.fields.iter().enumerate() {
            let Some(range) = range else { continue };
            let len = range.end.saturating_sub(range.start);
            write_header(&mut self.out, &self.tar.naming.file(&stem, number), len)?;
            sample.payload.copy(range, &mut self.out)?;
            pad(&mut self.out, len)?;
        }
        let label = self.tar.label.and_then(|position| facts.attributes.get(position)?.as_ref());
        if let Some(label) = label {
            let text = json::accepted(label)?.to_string();
            self.write_text(&self.tar.naming.extra(&stem, ".cls"), &text)?;
        }
        if let Some(object) = self.tar.attributes(&facts.attributes)? {
            self.write_text(&self.tar.naming.extra(&stem, self.tar.json_suffix), &object)?;
        }
        Ok(())
    }

    fn write_text(&mut self, name: &[u8], text: &str) -> io::Result<()> {
        write_header(&mut self.out, name, text.len() as u64)?;
        self.out.write_all(text.as_bytes())?;
        pad(&mut self.out, text.len() as u64)
    }
}

impl ShardWriter for TarWriter<'_> {
    fn write(&mut self, sample: &mut ExportedSample<'_>) -> Result<(), ExportError> {
        self.write_sample(sample).map_err(ExportError::io("write it", self.path))
    }

    fn finish(mut self: Box<Self>) -> Result<(), ExportError> {
        let ended = self.out.write_all(&ZEROS).and_then(|()| self.out.flush());
        ended.and_then(|()| self.out.get_mut().sync()).map_err(ExportError::io("write it", self.path))
    }
}

fn write_header(out: &mut dyn Write, name: &[u8], len: u64) -> io::Result<()> {
    if name.len() > NAME_LEN {
        let long_len = name.len() as u64 + 1;
        out.write_all(header(LONG_NAME, long_len, EntryType::GNULongName).as_bytes())?;
        out.write_all(name)?;
        out.write_all(&[0])?;
        pad(out, long_len)?;
    }
    out.write_all(header(name, len, EntryType::Regular).as_bytes())
}

/// A header with as much of the name as fits.
fn header(name: &[u8], len: u64, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    for (target, byte) in header.as_old_mut().name.iter_mut().zip(name) {
        *target = *byte;
    }
    header.set_entry_type(kind);
    header.set_size(len);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    header
}

/// Writes zeros up to the end of the last block of `len` bytes.
fn pad(out: &mut dyn Write, len: u64) -> io::Result<()> {
    let rest = len.next_multiple_of(BLOCK_LEN as u64) - len;
    out.write_all(&ZEROS[..grainstore_format::to_usize(rest)])
}
