//! A stream as a source: one part, opened once.

use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use grainstore_format::{Field, FieldType, FormatError, MAX_KEY_LEN, Metadata, Schema};
use serde_json::Map;

use super::recorder::Recorder;
use super::records::Records;
use crate::compressed::{Compression, content_head, head_of};
use crate::tar::{Passing, Shape, TarOptions, look_at_stream, recognises};
use crate::{Bad, Blocks, Layout, Part, Place, Reach, Samples, Source, SourceError};

/// Bytes that are looked at before the first sample, and kept.
const LOOK_LEN_MAX: usize = 64 << 20;

/// What comes along a stream. Compression is known by the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFormat {
    /// A tar archive.
    Tar,
    /// Records of key and payload, each behind its length.
    Records,
}

/// A stream that is read once.
pub struct StreamSource {
    origins: [PathBuf; 0],
    parts: [Part; 1],
    content: Content,
    /// Taken when the part is opened.
    stream: Mutex<Option<Box<dyn Read + Send>>>,
}

enum Content {
    Tar(Shape),
    Records { metadata: Metadata, is_keyed: bool },
}

impl StreamSource {
    /// Begins to read a stream: as much as it takes to know what it holds, 64 MiB at most.
    ///
    /// # Errors
    /// Where it cannot be read, or is not of that format.
    pub fn open(stream: Box<dyn Read + Send>, format: StreamFormat, options: &TarOptions) -> Result<Self, SourceError> {
        let refused = |why: String| SourceError::Refused { path: "-".into(), why };
        let unreadable = |error: io::Error| refused(format!("cannot be read: {error}"));
        let content = decompressed(stream, format).map_err(unreadable)?;
        let mut recorder = Recorder::new(content, LOOK_LEN_MAX);
        let content = match format {
            StreamFormat::Tar => Content::Tar(look_at_stream(&mut recorder, &options.map).map_err(refused)?),
            StreamFormat::Records => Content::records(&mut recorder)?,
        };
        let stream = Mutex::new(Some(recorder.replay()));
        let parts = [Part { path: "-".into(), len: 0, sample_count: None }];
        Ok(Self { origins: [], parts, content, stream })
    }

    fn bad(why: &str) -> Bad {
        Bad::new(Path::new("-"), Place::default(), why, Reach::Rest)
    }
}

impl Content {
    /// The first record says whether all have keys.
    fn records(stream: &mut dyn Read) -> Result<Self, FormatError> {
        let mut key_len = Vec::new();
        // What cannot be read is told by the part, with its place.
        let _ = stream.take(4).read_to_end(&mut key_len);
        let fields = vec![Field { name: "data".into(), kind: FieldType::Bytes }];
        let metadata = Metadata { schema: Schema::new(Vec::new(), fields)?, user: Map::new() };
        Ok(Self::Records { metadata, is_keyed: key_len.iter().any(|&byte| byte != 0) })
    }
}

/// The content of a stream. Two bytes that look like zlib may be anything, so what is inside must be of the format.
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

/// Whether a length that a key can have stands at the start.
fn begins_record(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|len| u32::from_le_bytes(*len) as usize <= MAX_KEY_LEN)
}

impl Source for StreamSource {
    fn kind(&self) -> &'static str {
        match self.content {
            Content::Tar(_) => "tar stream",
            Content::Records { .. } => "stream of records",
        }
    }

    fn origins(&self) -> &[PathBuf] {
        &self.origins
    }

    fn metadata(&self) -> &Metadata {
        match &self.content {
            Content::Tar(shape) => shape.metadata(),
            Content::Records { metadata, .. } => metadata,
        }
    }

    fn is_keyed(&self) -> bool {
        !matches!(self.content, Content::Records { is_keyed: false, .. })
    }

    fn is_once(&self) -> bool {
        true
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn blocks(&self, _part: usize) -> Result<Option<Blocks>, Bad> {
        Ok(None)
    }

    fn open(&self, _part: usize, position: u64, layout: Layout) -> Result<Box<dyn Samples + '_>, Bad> {
        if position != 0 || layout == Layout::InPlace {
            return Err(Self::bad("a stream is read from its start only"));
        }
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stream = stream.ok_or_else(|| Self::bad("a stream can be read once, and it has been"))?;
        Ok(match &self.content {
            Content::Tar(shape) => Box::new(Passing::new(shape, Path::new("-"), stream)),
            Content::Records { is_keyed, .. } => Box::new(Records::new(Path::new("-"), stream, *is_keyed)),
        })
    }

    fn not_adoptable(&self) -> Option<String> {
        Some("a stream has no file to point into: pack it with `convert`".into())
    }

    fn notes(&self) -> Vec<String> {
        match &self.content {
            Content::Tar(shape) => shape.notes().to_vec(),
            Content::Records { .. } => Vec::new(),
        }
    }
}
