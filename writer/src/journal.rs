//! The journal of a dataset under construction, `progress.json`: which segments are complete, and the options and
//! source that they were written with.
//!
//! It is written after each finished segment, through a temporary name, and trusted only as far as the files agree with
//! it. Only the writer uses it: readers ignore it, and it is removed when the dataset is committed. spec.md: WR-4,
//! WR-5.

use std::path::Path;
use std::sync::Arc;

use grainstore_format::{Fingerprint, FormatError, escape_bytes};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::emit::Emitted;
use crate::existing::read_document;
use crate::finished::FinishedSegment;
use crate::names::{JOURNAL_NAME, segment_name};
use crate::output::Output;
use crate::rows::SegmentRows;
use crate::storage::Storage;
use crate::{Compression, WriteError, WriterOptions};

const FORMAT: &str = "grainstore progress";
const WRITER: &str = env!("CARGO_PKG_VERSION");
const TAIL_HEAD: &str = ",\n  \"crc32\": \"";
const TAIL_END: &str = "\"\n}\n";
const TAIL_LEN: usize = TAIL_HEAD.len() + 8 + TAIL_END.len();
/// A longer stamp is not shown in errors.
const SHOWN_LEN: usize = 200;

/// The point from which an interrupted writer resumes.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumePoint {
    /// The number of samples in the finished segments. The writer expects the samples after them.
    pub samples: u64,
    /// The caller's note on the first `note_samples` samples; null if there was none.
    pub note: Value,
    /// The number of samples that the note is about. It is more than `samples` only if a finished segment was lost or
    /// damaged since: then the note includes samples that have to be written again.
    pub note_samples: u64,
}

/// Returns the caller's note on the first N samples.
pub(crate) type Notes = Box<dyn Fn(u64) -> Value + Send>;

/// The journal of one writer.
pub(crate) struct Journal {
    recipe: Recipe,
    notes: Option<Notes>,
    safe_samples: u64,
}

/// Everything except the samples that decides the bytes of a dataset.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    stamp: String,
    chunk_size: u64,
    alignment: String,
    hash_seed: u64,
    segment_size: u64,
    compression: String,
    keyed: bool,
    metadata: Value,
}

/// The part that is read first: it decides whether this version can read the rest.
#[derive(Deserialize)]
struct RawPreface {
    format: String,
    writer: String,
}

#[derive(Serialize, Deserialize)]
struct RawJournal {
    format: String,
    writer: String,
    recipe: Recipe,
    note: Value,
    note_samples: u64,
    segments: Vec<RawSegment>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSegment {
    name: String,
    file_len: u64,
    sample_count: u64,
    stored_bytes: u64,
    payload_bytes: u64,
    fingerprint: String,
}

impl Journal {
    /// Makes the journal of an empty dataset. `stamp` identifies the source of its samples.
    pub(crate) fn new(options: &WriterOptions, stamp: &str) -> Result<Self, WriteError> {
        let recipe = Recipe {
            stamp: stamp.to_owned(),
            chunk_size: options.geometry.chunk_size.bytes(),
            alignment: options.geometry.alignment.to_string(),
            hash_seed: options.geometry.hash_seed,
            segment_size: options.segment_size,
            compression: match options.compression {
                Compression::None => "none".to_owned(),
                Compression::Lz4 => "lz4".to_owned(),
            },
            keyed: options.keyed,
            metadata: serde_json::from_slice(&options.metadata.encode()?).map_err(not_json)?,
        };
        Ok(Self { recipe, notes: None, safe_samples: 0 })
    }

    /// The number of samples in the segments that the journal lists.
    pub(crate) fn safe_samples(&self) -> u64 {
        self.safe_samples
    }

    /// Sets the function that returns the notes.
    pub(crate) fn set_notes(&mut self, notes: Notes) {
        self.notes = Some(notes);
    }

    /// Writes a journal that lists `segments`, durably.
    pub(crate) fn write(
        &mut self,
        storage: &Arc<dyn Storage>,
        directory: &Path,
        segments: &[FinishedSegment],
    ) -> Result<(), WriteError> {
        let samples = segments.iter().map(|segment| segment.emitted.sample_count).sum();
        // The file names in the journal become durable before the journal does.
        storage.sync_dir(directory).map_err(WriteError::io("sync", directory))?;
        let mut output = Output::create(storage, directory.join(JOURNAL_NAME))?;
        output.write(&self.encode(segments, samples)?)?;
        output.rename_into_place()?;
        storage.sync_dir(directory).map_err(WriteError::io("sync", directory))?;
        self.safe_samples = samples;
        Ok(())
    }

    /// Returns the segments that the journal in `directory` lists, from the first up to the last that is complete, and
    /// the point from which to resume. The journal must have the same recipe.
    pub(crate) fn take_up(
        &mut self,
        storage: &dyn Storage,
        directory: &Path,
    ) -> Result<(Vec<FinishedSegment>, ResumePoint), WriteError> {
        let path = directory.join(JOURNAL_NAME);
        let bytes = read_document(storage, &path)?;
        let mismatch = |what| WriteError::ResumeMismatch { path: directory.to_owned(), what };
        let damaged = |source| WriteError::Damaged { path: path.clone(), source };
        let preface: RawPreface = serde_json::from_slice(&bytes).map_err(not_json).map_err(damaged)?;
        if preface.format != FORMAT || preface.writer != WRITER {
            let writer = escape_bytes(preface.writer.as_bytes());
            return Err(mismatch(format!("it was started by version \"{writer}\", this is \"{WRITER}\"")));
        }
        let raw = decode(&bytes).map_err(damaged)?;
        if let Some(what) = raw.recipe.difference(&self.recipe) {
            return Err(mismatch(what));
        }
        let listed = finished(raw.segments).map_err(damaged)?;
        let mut whole = Vec::new();
        for segment in listed {
            if !is_whole(storage, directory, &segment)? {
                break;
            }
            self.safe_samples = self.safe_samples.saturating_add(segment.emitted.sample_count);
            whole.push(segment);
        }
        let note = raw.note;
        let note_samples = raw.note_samples;
        Ok((whole, ResumePoint { samples: self.safe_samples, note, note_samples }))
    }

    /// Forgets the segments that were taken up: none of them is used.
    pub(crate) fn forget(&mut self) {
        self.safe_samples = 0;
    }

    fn encode(&self, segments: &[FinishedSegment], samples: u64) -> Result<Vec<u8>, WriteError> {
        let raw = RawJournal {
            format: FORMAT.to_owned(),
            writer: WRITER.to_owned(),
            recipe: self.recipe.clone(),
            note: self.notes.as_ref().map_or(Value::Null, |notes| notes(samples)),
            note_samples: samples,
            segments: segments.iter().map(RawSegment::of).collect(),
        };
        let mut text = serde_json::to_string_pretty(&raw).map_err(not_json)?;
        text.truncate(text.trim_end_matches(['\n', '}']).len());
        let crc = crc32fast::hash(text.as_bytes());
        Ok(format!("{text}{TAIL_HEAD}{crc:08x}{TAIL_END}").into_bytes())
    }
}

impl Recipe {
    /// Describes the first difference to `now`.
    fn difference(&self, now: &Self) -> Option<String> {
        let metadata = |recipe: &Self| shown(&recipe.metadata.to_string());
        let rows = [
            ("chunk size", self.chunk_size.to_string(), now.chunk_size.to_string()),
            ("alignment", self.alignment.clone(), now.alignment.clone()),
            ("hash seed", self.hash_seed.to_string(), now.hash_seed.to_string()),
            ("segment size", self.segment_size.to_string(), now.segment_size.to_string()),
            ("compression", self.compression.clone(), now.compression.clone()),
            ("samples have keys", self.keyed.to_string(), now.keyed.to_string()),
        ];
        if let Some((what, was, is)) = rows.into_iter().find(|(_, was, is)| was != is) {
            return Some(format!("{what}: it was started with {}, now {is}", escape_bytes(was.as_bytes())));
        }
        if self.metadata != now.metadata {
            return Some(format!("metadata: it was started with {}, now {}", metadata(self), metadata(now)));
        }
        let (was, is) = differing(&self.stamp, &now.stamp);
        (self.stamp != now.stamp).then(|| format!("it was started with {}, now {}", shown(&was), shown(&is)))
    }
}

impl RawSegment {
    fn of(segment: &FinishedSegment) -> Self {
        let Emitted { fingerprint, file_len, sample_count, stored_bytes, payload_bytes } = segment.emitted;
        let name = segment.name.clone();
        let fingerprint = fingerprint.to_string();
        Self { name, file_len, sample_count, stored_bytes, payload_bytes, fingerprint }
    }
}

/// The listed segments. Fails unless they have the names that a writer gives, in order.
fn finished(raw: Vec<RawSegment>) -> Result<Vec<FinishedSegment>, FormatError> {
    let one = |(number, raw): (u64, RawSegment)| {
        let RawSegment { name, file_len, sample_count, stored_bytes, payload_bytes, fingerprint } = raw;
        if name != segment_name(number) {
            return Err(damage(format!("segment {number} is called \"{}\"", escape_bytes(name.as_bytes()))));
        }
        let fingerprint: Fingerprint = fingerprint.parse().map_err(damage)?;
        Ok(FinishedSegment {
            name,
            emitted: Emitted { fingerprint, file_len, sample_count, stored_bytes, payload_bytes },
        })
    };
    (0..).zip(raw).map(one).collect()
}

/// Whether a listed segment exists, with the same length and the same index.
fn is_whole(storage: &dyn Storage, directory: &Path, segment: &FinishedSegment) -> Result<bool, WriteError> {
    use std::io::ErrorKind::{NotFound, UnexpectedEof};
    match SegmentRows::open(storage, directory.join(&segment.name)) {
        Ok(rows) => Ok(rows.emitted() == segment.emitted),
        Err(WriteError::Damaged { .. }) => Ok(false),
        Err(WriteError::Io { source, .. }) if matches!(source.kind(), NotFound | UnexpectedEof) => Ok(false),
        // A segment that cannot be read just now may still be complete, and is not discarded.
        Err(error) => Err(error),
    }
}

fn decode(bytes: &[u8]) -> Result<RawJournal, FormatError> {
    let body = bytes.len().checked_sub(TAIL_LEN).and_then(|len| bytes.split_at_checked(len));
    let (body, tail) = body.ok_or_else(|| damage("it is cut short".to_owned()))?;
    let crc = crc32fast::hash(body);
    if tail != format!("{TAIL_HEAD}{crc:08x}{TAIL_END}").as_bytes() {
        return Err(damage(format!("it ends with \"{}\", its CRC-32 is {crc:08x}", escape_bytes(tail))));
    }
    serde_json::from_slice(bytes).map_err(not_json)
}

/// The parts, separated by "; ", in which two stamps differ; the whole stamps if one has more parts.
fn differing(was: &str, is: &str) -> (String, String) {
    if was.split("; ").count() != is.split("; ").count() {
        return (was.to_owned(), is.to_owned());
    }
    let parts = was.split("; ").zip(is.split("; ")).filter(|(was, is)| was != is);
    let (was, is): (Vec<_>, Vec<_>) = parts.unzip();
    (was.join("; "), is.join("; "))
}

/// The text in quotes; for a long text only its length and its CRC-32, which distinguishes two of them.
fn shown(text: &str) -> String {
    if text.len() > SHOWN_LEN {
        return format!("{} bytes of CRC-32 {:08x}", text.len(), crc32fast::hash(text.as_bytes()));
    }
    format!("\"{}\"", escape_bytes(text.as_bytes()))
}

fn damage(detail: String) -> FormatError {
    FormatError::Damaged { what: "journal", detail }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn not_json(error: serde_json::Error) -> FormatError {
    damage(error.to_string())
}
