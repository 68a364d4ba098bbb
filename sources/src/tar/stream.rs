//! The samples of a tar that can be read only once: a compressed file, or standard input.
//!
//! The members of a sample are held in memory until the last one was read, 64 MiB at most. A longer member is streamed,
//! but only if it is the last member of its sample: attributes and the lengths of all fields are written before the
//! bytes. A long member that is not the last makes its sample unreadable.

use std::io::{self, Cursor, Read};
use std::path::Path;

use grainstore_format::{AttributeValue, to_usize};
use grainstore_writer::{Sample, StreamedSample};

use super::bytes::{Bytes, StreamBytes, read_range};
use super::groups::{ByteRange, Group, Groups, Take};
use super::members::unreadable;
use super::shape::TarShape;
use crate::{Bad, Reach, RecordLocation, Remark, SampleReader, SourceSample, WHOLE_LEN_MAX};

type TarStream = StreamBytes<Box<dyn Read + Send>>;

/// The samples of a stream.
pub(crate) struct StreamSamples<'a> {
    shape: &'a TarShape,
    path: &'a Path,
    groups: Groups<'a, TarStream>,
    long: LongPayload,
    /// The key of the sample that was streamed last.
    streamed: Option<Vec<u8>>,
}

/// A long payload: held fields, then the member that is still in the stream, then held fields.
#[derive(Default)]
struct LongPayload {
    before: Cursor<Vec<u8>>,
    in_stream: Option<ByteRange>,
    after: Cursor<Vec<u8>>,
}

/// The members of a sample that are held in memory.
struct Held {
    contents: Vec<Option<Vec<u8>>>,
    len: u64,
    /// The slot whose member was left in the stream.
    in_stream: Option<usize>,
}

impl<'a> StreamSamples<'a> {
    pub(crate) fn new(shape: &'a TarShape, path: &'a Path, stream: Box<dyn Read + Send>) -> Self {
        let groups = Groups::new(shape, StreamBytes::new(stream), 0);
        Self { shape, path, groups, long: LongPayload::default(), streamed: None }
    }

    fn finish(&mut self, group: &Group, held: Held) -> Result<SourceSample, Remark> {
        let key = group.key.clone();
        if self.streamed.take().as_ref() == Some(&key) {
            return Err("comes after a member of its sample that was long and has been streamed already".into());
        }
        let attributes = self.attributes(&held)?;
        let runs = self.shape.field_ranges(&group.runs)?;
        let (fields, len) = self.shape.packed(&runs);
        if len <= WHOLE_LEN_MAX && held.in_stream.is_none() {
            let (payload, _) = self.join(held);
            return Ok(SourceSample::Whole { sample: Sample { key, attributes, payload, fields }, offset: 0 });
        }
        let in_stream = held.in_stream.and_then(|slot| group.runs.get(slot).copied().flatten());
        let (before, after) = self.join(held);
        self.long = LongPayload { before: Cursor::new(before), in_stream, after: Cursor::new(after) };
        self.streamed = Some(key.clone());
        Ok(SourceSample::Long { sample: StreamedSample { key, attributes, fields, len }, offset: 0 })
    }

    fn attributes(&self, held: &Held) -> Result<Vec<Option<AttributeValue>>, Remark> {
        let mut attributes = self.shape.no_attributes();
        for (slot, content) in self.shape.slots.iter().zip(&held.contents) {
            if let Some(content) = content {
                slot.read_values(content, &mut attributes)?;
            }
        }
        Ok(attributes)
    }

    /// The held fields in order: those before the member that is still in the stream, and those after it.
    fn join(&self, held: Held) -> (Vec<u8>, Vec<u8>) {
        let mut fields = Vec::new();
        for (number, (slot, content)) in self.shape.slots.iter().zip(held.contents).enumerate() {
            if let Some(field) = slot.field {
                fields.push((field, held.in_stream == Some(number), content));
            }
        }
        fields.sort_by_key(|(field, ..)| *field);
        let mut before = Vec::new();
        let mut after = Vec::new();
        let mut is_after = false;
        for (_, is_streamed, content) in fields {
            is_after |= is_streamed;
            let joined = if is_after { &mut after } else { &mut before };
            match content {
                Some(content) if joined.is_empty() => *joined = content,
                Some(content) => joined.extend_from_slice(&content),
                // The sample has no such member, or the member is still in the stream.
                None => {}
            }
        }
        (before, after)
    }
}

impl Held {
    fn new(slot_count: usize) -> Self {
        Self { contents: vec![None; slot_count], len: 0, in_stream: None }
    }

    /// Reads the member of a slot into memory.
    fn take(&mut self, shape: &TarShape, stream: &mut TarStream, group: &Group, slot: usize, run: ByteRange) -> Take {
        if let Err(why) = shape.slots[slot].values.check_len(run.len) {
            return Take::Bad(why.into());
        }
        if run.len > WHOLE_LEN_MAX.saturating_sub(self.len) {
            return self.leave(group, slot, run);
        }
        match read_range(stream, run.offset, run.len) {
            Ok(content) => {
                self.len += run.len;
                self.contents[slot] = Some(content);
                Take::Continue
            }
            Err(error) => Take::Stop(unreadable(&error).into()),
        }
    }

    /// Leaves a member in the stream, to be streamed from there.
    fn leave(&mut self, group: &Group, slot: usize, run: ByteRange) -> Take {
        if group.is_full() {
            self.in_stream = Some(slot);
            return Take::Last;
        }
        Take::Bad(format!(
            "has {} bytes, which makes its sample longer than {WHOLE_LEN_MAX}, and other members of it may follow: in a \
             stream that cannot be packed; unpack the archive, or give it uncompressed as a file",
            run.len
        ).into())
    }
}

impl SampleReader for StreamSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        let mut held = Held::new(self.shape.slots.len());
        let shape = self.shape;
        let take = |stream: &mut TarStream, group: &Group, slot, run| held.take(shape, stream, group, slot, run);
        let Some(mut group) = self.groups.next(take) else { return Ok(None) };
        if let Some(bad) = group.bad.take() {
            return Err(bad.into_bad(self.path));
        }
        self.finish(&group, held).map(Some).map_err(|why| {
            let location = RecordLocation { record: None, offset: Some(group.position), name: Some(group.key) };
            Bad::new(self.path, location, why, Reach::Sample)
        })
    }

    fn payload(&mut self) -> &mut dyn Read {
        self
    }
}

/// Reads the payload of the last sample.
impl Read for StreamSamples<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = self.long.before.read(buffer)?;
        if found > 0 || buffer.is_empty() {
            return Ok(found);
        }
        let Some(run) = self.long.in_stream.as_mut().filter(|run| run.len > 0) else {
            return self.long.after.read(buffer);
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
