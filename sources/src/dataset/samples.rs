//! Reads the samples of a segment, block by block.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::iter::Peekable;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use grainstore_format::{AttributeValue, to_usize};
use grainstore_host::open_regular;
use grainstore_store::{Encoding, Location, OpenedFile, StoreError, check_and_decode, check_stored};
use grainstore_writer::{Sample, StreamedSample};

use super::ranges::Cut;
use super::source::{Member, bad_of};
use crate::source::SourceBlock;
use crate::{Bad, Layout, Reach, RecordLocation, SampleReader, SourceSample, WHOLE_LEN_MAX};

/// Samples that are at most this far apart are read as one.
const GAP_MAX: u64 = 64 << 10;
/// Bytes that are read at once, with the gaps.
const READ_MAX: u64 = 4 << 20;
/// Bytes of a long sample that are checked at once.
const PIECE_LEN: usize = 1 << 20;

/// The samples of a segment, from one of its ordinals on.
pub(super) struct DatasetSamples<'a> {
    member: &'a Member,
    path: &'a Path,
    left: Peekable<Box<dyn Iterator<Item = u64> + 'a>>,
    file: File,
    layout: Layout,
    ready: VecDeque<(u64, Result<Stored, Bad>)>,
    long: Box<dyn Read>,
}

/// What was read of a sample.
enum Stored {
    /// Its payload.
    Payload(Vec<u8>),
    /// Where it is, since it is too long to be held.
    Long(Location),
}

impl<'a> DatasetSamples<'a> {
    pub(super) fn open(member: &'a Member, ordinals: Range<u64>, path: &'a Path, layout: Layout) -> Result<Self, Bad> {
        let segment = member.dataset.segments().iter().position(|segment| segment.path() == path).unwrap_or(usize::MAX);
        let unusable = |error: StoreError| bad_of(path, RecordLocation::default(), &error, Reach::Rest);
        member.dataset.segment_file(segment).map_err(unusable)?;
        let (file, len) = open_regular(path).map_err(|error| Bad::file(path, &error))?;
        let opened = OpenedFile { len, fd: Some(file.as_fd()) };
        let read = |bytes: &mut [u8], offset| {
            let failed = |source| StoreError::Io { path: path.to_owned(), source };
            file.read_exact_at(bytes, offset).map_err(failed)
        };
        member.dataset.check_opened_segment(segment, opened, read).map_err(unusable)?;
        let left = member.ordinals(ordinals).peekable();
        Ok(Self { member, path, left, file, layout, ready: VecDeque::new(), long: Box::new(io::empty()) })
    }

    /// Reads the next block of samples, the same that [`Source::blocks`](crate::Source::blocks) has.
    fn read_block(&mut self) {
        let mut located: Vec<(u64, Location)> = Vec::new();
        let mut block = SourceBlock { position: 0, len: 0, sample_count: 0 };
        while let Some(&ordinal) = self.left.peek() {
            let location = match self.member.dataset.locate(ordinal) {
                Ok(location) => location,
                Err(error) => {
                    self.left.next();
                    self.read_located(&located);
                    self.ready.push_back((ordinal, Err(self.bad_index(ordinal, &error))));
                    return;
                }
            };
            let len = Member::held_len(location.raw_len());
            if block.sample_count > 0 && !block.takes(len) {
                break;
            }
            self.left.next();
            block.len += len;
            block.sample_count += 1;
            located.push((ordinal, location));
        }
        self.read_located(&located);
    }

    /// Reads neighbours with one read.
    fn read_located(&mut self, located: &[(u64, Location)]) {
        let is_near = |(_, one): &(u64, Location), (_, next): &(u64, Location)| {
            let end = one.offset.saturating_add(one.stored_len);
            end <= next.offset && next.offset - end <= GAP_MAX
        };
        let mut rest = located;
        while let Some((_, first)) = rest.first() {
            // Together they are no longer than a read should be: gaps add up where few samples are taken.
            let is_in_read = |pair: &&[(u64, Location)]| {
                is_near(&pair[0], &pair[1]) && pair[1].1.offset + pair[1].1.stored_len - first.offset <= READ_MAX
            };
            let (run, later) = rest.split_at(1 + rest.windows(2).take_while(is_in_read).count());
            rest = later;
            let Some((_, last)) = run.last() else { break };
            if let [(ordinal, location)] = run {
                let stored = self.read_one(*ordinal, location);
                self.ready.push_back((*ordinal, stored));
                continue;
            }
            let len = last.offset + last.stored_len - first.offset;
            let mut bytes = vec![0; to_usize(len)];
            let is_read = self.file.read_exact_at(&mut bytes, first.offset).is_ok();
            for (ordinal, location) in run {
                let stored = if is_read {
                    let start = to_usize(location.offset - first.offset);
                    self.decoded(*ordinal, location, &bytes[start..start + to_usize(location.stored_len)])
                } else {
                    // One of them cannot be read; the others can.
                    self.read_one(*ordinal, location)
                };
                self.ready.push_back((*ordinal, stored));
            }
        }
    }

    fn read_one(&self, ordinal: u64, location: &Location) -> Result<Stored, Bad> {
        if location.raw_len() > WHOLE_LEN_MAX {
            return Ok(Stored::Long(*location));
        }
        let mut bytes = vec![0; to_usize(location.stored_len)];
        let unread = |error: io::Error| self.bad(ordinal, location.offset, error.to_string());
        self.file.read_exact_at(&mut bytes, location.offset).map_err(unread)?;
        if location.encoding != Encoding::Raw {
            return self.decoded(ordinal, location, &bytes);
        }
        check_stored(location, &bytes).map_err(|error| self.bad(ordinal, location.offset, error.to_string()))?;
        Ok(Stored::Payload(bytes))
    }

    fn decoded(&self, ordinal: u64, location: &Location, stored: &[u8]) -> Result<Stored, Bad> {
        let mut payload = Vec::with_capacity(to_usize(location.raw_len().min(WHOLE_LEN_MAX)));
        let wrong = |error: grainstore_store::PayloadError| self.bad(ordinal, location.offset, error.to_string());
        check_and_decode(location, stored, &mut payload).map_err(wrong)?;
        Ok(Stored::Payload(payload))
    }

    fn made(&mut self, ordinal: u64, stored: Stored) -> Result<SourceSample, Bad> {
        let dataset = &self.member.dataset;
        let unread = |error: StoreError| self.bad_index(ordinal, &error);
        let key = dataset.key(ordinal).map_err(unread)?.unwrap_or_default();
        let attributes = self.attributes(ordinal)?;
        let len = match &stored {
            Stored::Payload(payload) => payload.len() as u64,
            Stored::Long(location) => location.raw_len(),
        };
        let old = dataset.fields(ordinal, len).map_err(unread)?;
        let cut = match self.layout {
            Layout::Packed => Cut::of(self.member.shape.fields.iter().map(|&field| old.get(field).cloned().flatten())),
            Layout::InPlace => Cut { ranges: std::iter::once(0..len).collect(), fields: old, len },
        };
        let has_columns = match self.layout {
            Layout::Packed => cut.fields.len() > 1,
            Layout::InPlace => dataset.has_field_columns(),
        };
        if let (false, [None]) = (has_columns, cut.fields.as_slice()) {
            return Err(self.bad(ordinal, 0, "it does not have the only field that is taken".to_owned()));
        }
        let fields = if has_columns { cut.fields.clone() } else { Vec::new() };
        match stored {
            Stored::Payload(payload) => {
                let payload = if cut.is_whole(len) { payload } else { joined(&payload, &cut) };
                Ok(SourceSample::Whole { sample: Sample { key, attributes, payload, fields }, offset: 0 })
            }
            Stored::Long(location) => {
                self.long = self.stream(ordinal, &location, &cut, len)?;
                let sample = StreamedSample { key, attributes, fields, len: cut.len };
                Ok(SourceSample::Long { sample, offset: 0 })
            }
        }
    }

    fn attributes(&self, ordinal: u64) -> Result<Vec<Option<AttributeValue>>, Bad> {
        let mut all = self.member.dataset.attributes(ordinal).map_err(|error| self.bad_index(ordinal, &error))?;
        let taken = self.member.shape.attributes.iter();
        let mut attributes: Vec<_> = taken.map(|&number| all.get_mut(number).and_then(Option::take)).collect();
        let mut numberings = self.member.numberings.iter();
        numberings
            .try_for_each(|numbering| numbering.apply(&mut attributes))
            .map_err(|why| self.bad(ordinal, 0, why))?;
        Ok(attributes)
    }

    /// The bytes of a long sample, which is stored raw. Its checksum is compared before its last bytes are handed out,
    /// or before all of them where only parts of it are taken.
    fn stream(&self, ordinal: u64, location: &Location, cut: &Cut, len: u64) -> Result<Box<dyn Read>, Bad> {
        let unread = |error: io::Error| self.bad(ordinal, location.offset, error.to_string());
        let file = self.file.try_clone().map_err(unread)?;
        let mut checked = CheckedPayload {
            bytes: FileRange { file, next: location.offset, left: location.stored_len },
            found: crc32fast::Hasher::new(),
            expected: location.crc,
        };
        if cut.is_whole(len) {
            return Ok(Box::new(checked));
        }
        let mut piece = vec![0; PIECE_LEN];
        while checked.read(&mut piece).map_err(unread)? > 0 {}
        let mut parts: Box<dyn Read> = Box::new(io::empty());
        for range in &cut.ranges {
            let file = self.file.try_clone().map_err(unread)?;
            let part = FileRange { file, next: location.offset + range.start, left: range.end - range.start };
            parts = Box::new(parts.chain(part));
        }
        Ok(parts)
    }

    fn bad(&self, ordinal: u64, offset: u64, why: String) -> Bad {
        let location = RecordLocation { record: Some(ordinal), offset: (offset > 0).then_some(offset), name: None };
        Bad::new(self.path, location, why, Reach::Sample)
    }

    fn bad_index(&self, ordinal: u64, error: &StoreError) -> Bad {
        let location = RecordLocation { record: Some(ordinal), ..RecordLocation::default() };
        bad_of(self.path, location, error, Reach::Sample)
    }
}

impl SampleReader for DatasetSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        self.long = Box::new(io::empty());
        if self.ready.is_empty() {
            self.read_block();
        }
        let Some((ordinal, stored)) = self.ready.pop_front() else { return Ok(None) };
        self.made(ordinal, stored?).map(Some)
    }

    fn payload(&mut self) -> &mut dyn Read {
        &mut self.long
    }
}

/// The bytes of a payload that are taken.
fn joined(payload: &[u8], cut: &Cut) -> Vec<u8> {
    let mut joined = Vec::with_capacity(to_usize(cut.len));
    for range in &cut.ranges {
        joined.extend_from_slice(payload.get(to_usize(range.start)..to_usize(range.end)).unwrap_or_default());
    }
    joined
}

/// A byte range of a file.
struct FileRange {
    file: File,
    next: u64,
    left: u64,
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(to_usize(self.left.min(PIECE_LEN as u64)));
        if len == 0 {
            return Ok(0);
        }
        let read = self.file.read_at(&mut buffer[..len], self.next)?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends within the sample"));
        }
        self.next += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

/// The bytes of a raw payload. The last ones are handed out only if all agree with the checksum.
struct CheckedPayload {
    bytes: FileRange,
    found: crc32fast::Hasher,
    expected: u32,
}

impl Read for CheckedPayload {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.found.update(&buffer[..read]);
        if read > 0 && self.bytes.left == 0 {
            let found = self.found.clone().finalize();
            if found != self.expected {
                let expected = self.expected;
                let what = format!("CRC-32 of the stored bytes is {found:08x}, the entry has {expected:08x}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        Ok(read)
    }
}
