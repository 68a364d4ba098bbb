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
use crate::job::ExportJob;
use crate::names::{NameCheck, Naming, Style, before_first_dot, last_part};
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

/// Finds out how WebDataset would group the members into samples.
#[derive(Default)]
struct Grouping {
    before: Vec<u8>,
    merged: (u64, Option<u64>),
    hidden: (u64, Option<u64>),
}

impl Tar {
    /// Checks all selected samples.
    pub(crate) fn plan(job: &ExportJob<'_>) -> Result<Self, ExportError> {
        let schema = job.collection().schema();
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
        let mut grouping = Grouping::default();
        index_pass::each(job, |sample| {
            names.look(&sample, &extras)?;
            let stem = tar.naming.stem(sample.ordinal, sample.key.as_deref());
            if grouping.look(sample.ordinal, &tar.naming.file(&stem, 0)) && schema.fields().len() > 1 {
                let why = "WebDataset ends a name at the first dot, so this sample and the one before it would be one";
                return Err(ExportError::BadName { ordinal: sample.ordinal, key: stem, why: why.into() });
            }
            json::check(schema.attributes(), &sample)
        })?;
        tar.notes = grouping.notes();
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

impl Grouping {
    /// Looks at the first member of a sample. Returns whether WebDataset would merge it with the sample before.
    fn look(&mut self, ordinal: u64, member: &[u8]) -> bool {
        if last_part(member).first() == Some(&b'.') {
            count(&mut self.hidden, ordinal);
        }
        let name = before_first_dot(member);
        let is_merged = name == self.before;
        if is_merged {
            count(&mut self.merged, ordinal);
        }
        self.before.clear();
        self.before.extend_from_slice(name);
        is_merged
    }

    fn notes(&self) -> Vec<String> {
        let note = |(count, first): (u64, Option<u64>), what: &str| {
            first.map(|first| format!("{what}: {count} in all, the first is sample {first}"))
        };
        let merged = "WebDataset ends a sample's name at the first dot of its last part, and takes samples that follow \
                      each other with the same name for one";
        let hidden = "WebDataset does not see members whose last part begins with a dot";
        note(self.merged, merged).into_iter().chain(note(self.hidden, hidden)).collect()
    }
}

fn count(found: &mut (u64, Option<u64>), ordinal: u64) {
    found.0 += 1;
    found.1.get_or_insert(ordinal);
}
