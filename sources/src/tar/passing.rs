//! The samples of a tar that passes by once: of a compressed file, or of standard input.
//!
//! A sample's members are held until its last one has come, 64 MiB of them at most. A longer member can be streamed on
//! only where nothing of its sample is missing any more, since its attributes and the length of all its fields are
//! before its bytes in what is written. Any other such sample cannot be read.

use std::io::{self, Cursor, Read};
use std::path::Path;

use grainstore_format::{AttributeValue, to_usize};
use grainstore_writer::{Sample, StreamedSample};

use super::bytes::{Bytes, StreamBytes, read_run};
use super::groups::{ByteRange, Group, Groups, Take};
use super::members::unreadable;
use super::shape::TarShape;
use crate::{Bad, Reach, RecordLocation, Remark, SampleReader, SourceSample, WHOLE_LEN_MAX};

type TarStream = StreamBytes<Box<dyn Read + Send>>;

/// The samples of a stream.
pub(crate) struct Passing<'a> {
    shape: &'a TarShape,
    path: &'a Path,
    groups: Groups<'a, TarStream>,
    long: LongPayload,
    /// The key of the sample that was streamed last.
    streamed: Option<Vec<u8>>,
}

/// A long payload: what is held of it, the member that is still in the stream, what is held again.
#[derive(Default)]
struct LongPayload {
    before: Cursor<Vec<u8>>,
    passing: Option<ByteRange>,
    behind: Cursor<Vec<u8>>,
}

/// What is held of a sample.
struct Held {
    contents: Vec<Option<Vec<u8>>>,
    len: u64,
    /// The slot whose member was left in the stream.
    passing: Option<usize>,
}

impl<'a> Passing<'a> {
    pub(crate) fn new(shape: &'a TarShape, path: &'a Path, stream: Box<dyn Read + Send>) -> Self {
        let groups = Groups::new(shape, StreamBytes::new(stream), 0);
        Self { shape, path, groups, long: LongPayload::default(), streamed: None }
    }

    fn finish(&mut self, group: &Group, held: Held) -> Result<SourceSample, Remark> {
        let key = group.key.clone();
        if self.streamed.take().as_ref() == Some(&key) {
            return Err("comes after a member of its sample that was long and has been passed on already".into());
        }
        let attributes = self.attributes(&held)?;
        let runs = self.shape.field_runs(&group.runs)?;
        let (fields, len) = self.shape.packed(&runs);
        if len <= WHOLE_LEN_MAX && held.passing.is_none() {
            let (payload, _) = self.join(held);
            return Ok(SourceSample::Whole { sample: Sample { key, attributes, payload, fields }, offset: 0 });
        }
        let passing = held.passing.and_then(|slot| group.runs.get(slot).copied().flatten());
        let (before, behind) = self.join(held);
        self.long = LongPayload { before: Cursor::new(before), passing, behind: Cursor::new(behind) };
        self.streamed = Some(key.clone());
        Ok(SourceSample::Long { sample: StreamedSample { key, attributes, fields, len }, offset: 0 })
    }

    fn attributes(&self, held: &Held) -> Result<Vec<Option<AttributeValue>>, Remark> {
        let mut attributes = self.shape.no_attributes();
        for (slot, content) in held.contents.iter().enumerate() {
            if let Some(content) = content {
                self.shape.read_values(slot, content, &mut attributes)?;
            }
        }
        Ok(attributes)
    }

    /// The fields one after the other: those before the one that is still in the stream, and those behind it.
    fn join(&self, mut held: Held) -> (Vec<u8>, Vec<u8>) {
        let mut slots: Vec<usize> = (0..held.contents.len()).collect();
        slots.retain(|&slot| self.shape.slots.get(slot).is_some_and(|slot| slot.field.is_some()));
        slots.sort_by_key(|&slot| self.shape.slots.get(slot).and_then(|slot| slot.field));
        let mut before = Vec::new();
        let mut behind = Vec::new();
        let mut is_behind = false;
        for slot in slots {
            is_behind |= held.passing == Some(slot);
            let content = held.contents.get_mut(slot).and_then(Option::take).unwrap_or_default();
            let joined = if is_behind { &mut behind } else { &mut before };
            if joined.is_empty() { *joined = content } else { joined.extend_from_slice(&content) }
        }
        (before, behind)
    }
}

impl Held {
    fn new(slot_count: usize) -> Self {
        Self { contents: vec![None; slot_count], len: 0, passing: None }
    }

    /// Holds the member of a slot.
    fn take(&mut self, shape: &TarShape, stream: &mut TarStream, group: &Group, slot: usize, run: ByteRange) -> Take {
        let values = shape.slots.get(slot).map_or(Ok(()), |slot| slot.values.check_len(run.len));
        if let Err(why) = values {
            return Take::Spoil(why.into());
        }
        if run.len > WHOLE_LEN_MAX.saturating_sub(self.len) {
            return self.leave(group, slot, run);
        }
        match read_run(stream, run.offset, run.len) {
            Ok(content) => {
                self.len += run.len;
                self.contents[slot] = Some(content);
                Take::On
            }
            Err(error) => Take::Stop(unreadable(&error).into()),
        }
    }

    /// Leaves a member in the stream, to be passed on from there.
    fn leave(&mut self, group: &Group, slot: usize, run: ByteRange) -> Take {
        if group.is_full() {
            self.passing = Some(slot);
            return Take::Last;
        }
        Take::Spoil(format!(
            "has {} bytes, which makes its sample longer than {WHOLE_LEN_MAX}, and other members of it may follow: in a \
             stream that cannot be packed; unpack the archive, or give it uncompressed as a file",
            run.len
        ).into())
    }
}

impl SampleReader for Passing<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        let mut held = Held::new(self.shape.slots.len());
        let shape = self.shape;
        let take = |stream: &mut TarStream, group: &Group, slot, run| held.take(shape, stream, group, slot, run);
        let Some(mut group) = self.groups.next(take) else { return Ok(None) };
        if let Some(bad) = group.bad.take() {
            return Err(bad.into_bad(self.path));
        }
        self.finish(&group, held).map(Some).map_err(|why| {
            let place = RecordLocation { record: None, offset: Some(group.position), name: Some(group.key) };
            Bad::new(self.path, place, why, Reach::Sample)
        })
    }

    fn payload(&mut self) -> &mut dyn Read {
        self
    }
}

/// The payload of the sample that came last.
impl Read for Passing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = self.long.before.read(buffer)?;
        if found > 0 || buffer.is_empty() {
            return Ok(found);
        }
        let Some(run) = self.long.passing.as_mut().filter(|run| run.len > 0) else {
            return self.long.behind.read(buffer);
        };
        let len = buffer.len().min(to_usize(run.len));
        let found = self.groups.bytes().read_at(run.offset, &mut buffer[..len])?;
        if found < len {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive ends inside the member"));
        }
        run.offset += found as u64;
        run.len -= found as u64;
        Ok(found)
    }
}
