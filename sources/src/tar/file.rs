//! The samples of an uncompressed tar file. All headers of a sample are read before its payload.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use grainstore_format::{AttributeValue, to_usize};
use grainstore_writer::{Sample, StreamedSample};

use super::bytes::{Bytes, FileBytes, read_range};
use super::groups::{ByteRange, Group, Groups, Take};
use super::members::unreadable;
use super::shape::TarShape;
use crate::{
    Bad, BlockBuilder, Blocks, Layout, Reach, RecordLocation, Remark, SampleReader, SourceSample, WHOLE_LEN_MAX,
};

/// The locations of the samples of an archive. Payloads are skipped.
pub(super) fn blocks(shape: &TarShape, bytes: FileBytes) -> Blocks {
    let mut builder = BlockBuilder::default();
    let mut groups = Groups::new(shape, bytes, 0);
    while let Some(group) = groups.next(|_, _, _, _| Take::Continue) {
        let ends_all = group.bad.as_ref().is_some_and(|bad| bad.reach == Reach::Rest);
        // A block of its own, so that only this block is lost. Reading it reports the reason.
        let len = if ends_all { BlockBuilder::ALONE_LEN } else { group.end.saturating_sub(group.position) };
        builder.push(group.position, len);
    }
    builder.finish()
}

/// The samples from a header on.
pub(super) struct FileSamples<'a> {
    shape: &'a TarShape,
    path: &'a Path,
    layout: Layout,
    groups: Groups<'a, FileBytes>,
    long: RangesReader,
}

/// Byte ranges of a file, read one after the other.
struct RangesReader {
    file: Arc<File>,
    runs: std::vec::IntoIter<ByteRange>,
    current: ByteRange,
}

/// How the bytes of a payload are arranged.
struct PayloadLayout {
    runs: Vec<ByteRange>,
    fields: Vec<Option<std::ops::Range<u64>>>,
    len: u64,
    offset: u64,
}

impl<'a> FileSamples<'a> {
    pub(super) fn new(shape: &'a TarShape, path: &'a Path, bytes: FileBytes, start: (u64, Layout)) -> Self {
        let long =
            RangesReader { file: bytes.file(), runs: Vec::new().into_iter(), current: ByteRange { offset: 0, len: 0 } };
        Self { shape, path, layout: start.1, groups: Groups::new(shape, bytes, start.0), long }
    }

    fn load(&mut self, group: &Group) -> Result<SourceSample, Remark> {
        let attributes = self.attributes(group)?;
        let fields = self.shape.field_ranges(&group.runs)?;
        let arranged = match self.layout {
            Layout::Packed => self.packed(&fields),
            Layout::InPlace => self.in_place(&fields, group),
        };
        let key = group.key.clone();
        let offset = arranged.offset;
        if arranged.len > WHOLE_LEN_MAX {
            let sample = StreamedSample { key, attributes, fields: arranged.fields, len: arranged.len };
            self.long.runs = arranged.runs.into_iter();
            self.long.current.len = 0;
            return Ok(SourceSample::Long { sample, offset });
        }
        let payload = self.read(&arranged)?;
        Ok(SourceSample::Whole { sample: Sample { key, attributes, payload, fields: arranged.fields }, offset })
    }

    fn attributes(&mut self, group: &Group) -> Result<Vec<Option<AttributeValue>>, Remark> {
        let mut attributes = self.shape.no_attributes();
        for (slot, run) in self.shape.slots.iter().zip(&group.runs) {
            let Some(run) = run.filter(|_| slot.values.are_any()) else { continue };
            slot.values.check_len(run.len)?;
            let content = read_range(self.groups.bytes(), run.offset, run.len).map_err(|error| unreadable(&error))?;
            slot.read_values(&content, &mut attributes)?;
        }
        Ok(attributes)
    }

    fn packed(&self, fields: &[Option<ByteRange>]) -> PayloadLayout {
        let (ranges, len) = self.shape.packed(fields);
        PayloadLayout { runs: fields.iter().flatten().copied().collect(), fields: ranges, len, offset: 0 }
    }

    /// From the first byte of the first field to the last byte of the last one, with the headers between them.
    fn in_place(&self, fields: &[Option<ByteRange>], group: &Group) -> PayloadLayout {
        let there = || fields.iter().flatten();
        // Without any field, the payload is empty.
        let offset = there().map(|run| run.offset).min().unwrap_or(group.end);
        let end = there().map(|run| run.offset.saturating_add(run.len)).max().unwrap_or(offset);
        let range = |run: &Option<ByteRange>| {
            let start = run.as_ref()?.offset - offset;
            Some(start..start + run.as_ref()?.len)
        };
        let ranges = self.shape.stored_ranges(fields.iter().map(range).collect());
        let len = end - offset;
        PayloadLayout { runs: vec![ByteRange { offset, len }], fields: ranges, len, offset }
    }

    fn read(&mut self, arranged: &PayloadLayout) -> Result<Vec<u8>, String> {
        let file_len = self.groups.bytes().file_len();
        if arranged.len > file_len {
            return Err(format!("has {} bytes, but the file {file_len}", arranged.len));
        }
        let mut payload = vec![0; to_usize(arranged.len)];
        let mut rest = &mut payload[..];
        for run in &arranged.runs {
            let (now, later) = rest.split_at_mut(to_usize(run.len));
            let found = self.groups.bytes().read_at(run.offset, now).map_err(|error| unreadable(&error))?;
            if found < now.len() {
                return Err(format!("the file ends inside it: it shrank from {file_len} bytes while it was read"));
            }
            rest = later;
        }
        Ok(payload)
    }
}

impl SampleReader for FileSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        let Some(mut group) = self.groups.next(|_, _, _, _| Take::Continue) else { return Ok(None) };
        if let Some(bad) = group.bad.take() {
            return Err(bad.into_bad(self.path));
        }
        self.load(&group).map(Some).map_err(|why| {
            let location = RecordLocation { record: None, offset: Some(group.position), name: Some(group.key) };
            Bad::new(self.path, location, why, Reach::Sample)
        })
    }

    fn payload(&mut self) -> &mut dyn Read {
        &mut self.long
    }
}

impl Read for RangesReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.len == 0 {
            match self.runs.next() {
                Some(run) => self.current = run,
                None => return Ok(0),
            }
        }
        let len = buffer.len().min(to_usize(self.current.len));
        let found = self.file.read_at(&mut buffer[..len], self.current.offset)?;
        if found == 0 && len > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file shrank while it was read"));
        }
        self.current.offset += found as u64;
        self.current.len -= found as u64;
        Ok(found)
    }
}
