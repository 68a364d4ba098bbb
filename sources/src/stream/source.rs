//! A stream as a source: one part, opened once.

use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use grainstore_format::{Field, FieldType, FormatError, MAX_KEY_LEN, Metadata, Remedy, Schema, UserMetadata};

use super::recorder::Recorder;
use super::records::Records;
use crate::compressed::{Compression, content_head, head_of};
use crate::tar::{StreamSamples, TarOptions, TarShape, infer_from_stream, recognises};
use crate::{
    Bad, Blocks, Description, Layout, Reach, RecordLocation, Remark, SampleReader, Source, SourceError, SourcePart,
    stamp_of_parts,
};

/// Bytes that are examined before the first sample is read, and held in memory.
const LOOK_LEN_MAX: usize = 64 << 20;

/// The format of a stream. Compression is recognised by the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFormat {
    /// A tar archive.
    Tar,
    /// Records of key and payload, each after its length.
    Records,
}

/// A stream that is read once.
pub struct StreamSource {
    description: Description,
    content: StreamContent,
    /// Taken when the part is opened.
    stream: Mutex<Option<Box<dyn Read + Send>>>,
}

enum StreamContent {
    Tar(TarShape),
    Records { is_keyed: bool },
}

impl StreamSource {
    /// Begins to read a stream: as much as it takes to infer the schema, 64 MiB at most.
    ///
    /// # Errors
    /// Where it cannot be read, or is not of that format.
    pub fn open(stream: Box<dyn Read + Send>, format: StreamFormat, options: &TarOptions) -> Result<Self, SourceError> {
        let refused = |why: Remark| SourceError::Refused { path: "-".into(), why };
        let unreadable = |error: io::Error| refused(format!("cannot be read: {error}").into());
        let content = decompressed(stream, format).map_err(unreadable)?;
        let mut recorder = Recorder::new(content, LOOK_LEN_MAX);
        let content = match format {
            StreamFormat::Tar => StreamContent::Tar(infer_from_stream(&mut recorder, options).map_err(refused)?),
            StreamFormat::Records => StreamContent::Records { is_keyed: has_key(&mut recorder) },
        };
        let stream = Mutex::new(Some(recorder.replay()));
        Ok(Self { description: content.description()?, content, stream })
    }

    fn bad(why: &str) -> Bad {
        Bad::new(Path::new("-"), RecordLocation::default(), why, Reach::Rest)
    }
}

impl StreamContent {
    fn description(&self) -> Result<Description, FormatError> {
        let parts = vec![SourcePart { path: "-".into(), len: 0, sample_count: None }];
        let description = match self {
            Self::Tar(shape) => Description {
                notes: shape.notes().to_vec(),
                ..Description::new("tar stream", Vec::new(), shape.metadata().clone(), parts)
            },
            Self::Records { is_keyed } => {
                let fields = vec![Field { name: "data".into(), kind: FieldType::Bytes }];
                let metadata = Metadata { schema: Schema::new(Vec::new(), fields)?, user: UserMetadata::default() };
                Description {
                    is_keyed: *is_keyed,
                    ..Description::new("stream of records", Vec::new(), metadata, parts)
                }
            }
        };
        Ok(Description {
            is_once: true,
            ascends: true,
            not_adoptable: Some(Remark::new("a stream has no file to refer to", Remedy::Convert)),
            ..description
        })
    }
}

/// Whether the first record has a key; then all have.
fn has_key(stream: &mut dyn Read) -> bool {
    let mut key_len = Vec::new();
    // An error here is reported when the part is read, with its location.
    let _ = stream.take(4).read_to_end(&mut key_len);
    key_len.iter().any(|&byte| byte != 0)
}

/// The decompressed content of a stream. Two bytes that look like zlib may be anything, so the content must be of the
/// expected format.
fn decompressed(mut stream: Box<dyn Read + Send>, format: StreamFormat) -> io::Result<Box<dyn Read + Send>> {
    let head = head_of(&mut stream)?;
    let is_inside = |head: &[u8]| match format {
        StreamFormat::Tar => recognises(head),
        StreamFormat::Records => begins_record(head),
    };
    let found = match Compression::of(&head) {
        Compression::None => Compression::None,
        _ if is_inside(&head) => Compression::None,
        Compression::Zlib if !is_inside(&content_head(&head, Compression::Zlib)) => Compression::None,
        other => other,
    };
    let whole = Cursor::new(head).chain(stream);
    match found {
        Compression::None => Ok(Box::new(whole)),
        other => other.reader(BufReader::new(whole)),
    }
}

/// Whether the bytes begin with a valid length of a key.
fn begins_record(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|len| u32::from_le_bytes(*len) as usize <= MAX_KEY_LEN)
}

impl Source for StreamSource {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, _part: usize) -> Result<Option<Blocks>, Bad> {
        Ok(None)
    }

    fn open(&self, _part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        if position != 0 || layout == Layout::InPlace {
            return Err(Self::bad("a stream is read from its start only"));
        }
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stream = stream.ok_or_else(|| Self::bad("a stream can be read once, and it has been"))?;
        Ok(match &self.content {
            StreamContent::Tar(shape) => Box::new(StreamSamples::new(shape, Path::new("-"), stream)),
            StreamContent::Records { is_keyed } => Box::new(Records::new(Path::new("-"), stream, *is_keyed)),
        })
    }

    fn stamp(&self) -> u64 {
        stamp_of_parts(&self.description.parts)
    }
}
