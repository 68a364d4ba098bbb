//! Writes the entries of a feed, and records the ones that were skipped.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore_format::Remedy;
use grainstore_sources::{Bad, Layout, Reach, RecordLocation, Remark, Skipped, Source};
use grainstore_writer::{DatasetWriter, StreamError, StreamedSample};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::duplicates::Drops;
use crate::feed::{Entry, EntryContent, Feed, LongSample, check};
use crate::{ConvertError, Events, OnBad, Progress};

/// Packs the entries of one conversion.
pub(crate) struct Packer<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) writer: &'a mut DatasetWriter,
    pub(crate) events: &'a dyn Events,
    pub(crate) on_bad: OnBad,
    pub(crate) drops: &'a Drops,
    /// Entries to pack or skip, including those of an interrupted conversion.
    pub(crate) entries_max: u64,
    pub(crate) account: Account,
    pub(crate) progress: Progress,
}

/// The samples a conversion has not stored so far, shared with the writer's journal, so that a resumed one keeps the
/// list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    unstored: Arc<Mutex<Vec<Note>>>,
}

/// Samples that were not stored, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    /// Number of samples that were packed before them.
    before: u64,
    what: Unstored,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Unstored {
    Bad {
        path: String,
        why: String,
        /// Not part of the journal.
        remedy: Option<Box<Remedy>>,
    },
    /// This many were left out.
    LeftOut(u64),
}

/// A note as the journal has it: either `path` and `why`, or `left_out`.
#[derive(Deserialize)]
struct JournalNote {
    before: u64,
    path: Option<String>,
    why: Option<String>,
    left_out: Option<u64>,
}

impl JournalNote {
    fn read(self) -> Option<Note> {
        let what = match self {
            Self { path: Some(path), why: Some(why), left_out: None, .. } => Unstored::Bad { path, why, remedy: None },
            Self { path: None, why: None, left_out: Some(count), .. } => Unstored::LeftOut(count),
            _ => return None,
        };
        Some(Note { before: self.before, what })
    }
}

impl Note {
    fn count(&self) -> u64 {
        match self.what {
            Unstored::Bad { .. } => 1,
            Unstored::LeftOut(count) => count,
        }
    }
}

impl Account {
    /// Reads the account from the journal's note, as far as it concerns the first `samples` packed samples. `None`
    /// where the note is not an account.
    pub(crate) fn restored(note: &Value, samples: u64) -> Option<Self> {
        let notes: Vec<JournalNote> = serde_json::from_value(note.clone()).ok()?;
        let mut notes: Vec<Note> = notes.into_iter().map(JournalNote::read).collect::<Option<_>>()?;
        notes.retain(|note| note.before < samples);
        Some(Self { unstored: Arc::new(Mutex::new(notes)) })
    }

    /// The journal's note on the first `samples` packed samples.
    pub(crate) fn note(&self, samples: u64) -> Value {
        let notes = self.lock();
        let before = notes.iter().filter(|note| note.before < samples);
        let written = before.map(|note| match &note.what {
            Unstored::Bad { path, why, .. } => json!({ "before": note.before, "path": path, "why": why }),
            Unstored::LeftOut(count) => json!({ "before": note.before, "left_out": count }),
        });
        written.collect()
    }

    /// The indexes of the samples that were not stored among all that were taken, ascending.
    pub(crate) fn unstored_places(&self) -> Vec<u64> {
        let mut places = Vec::new();
        for note in self.lock().iter() {
            let first = note.before + places.len() as u64;
            places.extend(first..first + note.count());
        }
        places
    }

    /// How many were left out, though nothing was wrong with them.
    pub(crate) fn left_out_count(&self) -> u64 {
        let left_out = |note: &Note| if let Unstored::LeftOut(count) = note.what { count } else { 0 };
        self.lock().iter().map(left_out).sum()
    }

    fn leave_out(&self, before: u64) {
        let mut notes = self.lock();
        match notes.last_mut() {
            Some(Note { before: last, what: Unstored::LeftOut(count) }) if *last == before => *count += 1,
            _ => notes.push(Note { before, what: Unstored::LeftOut(1) }),
        }
    }

    pub(crate) fn skipped(&self) -> Vec<Skipped> {
        let skipped = |note: &Note| match &note.what {
            Unstored::Bad { path, why, remedy } => {
                let why = Remark { text: why.clone(), remedy: remedy.clone() };
                Some(Skipped { path: PathBuf::from(path), why })
            }
            Unstored::LeftOut(_) => None,
        };
        self.lock().iter().filter_map(skipped).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        self.unstored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Packer<'_> {
    /// Packs the entries of `feed`.
    pub(crate) fn pack(&mut self, feed: &mut dyn Feed) -> Result<(), ConvertError> {
        let mut done_count = self.progress.samples;
        while done_count < self.entries_max {
            let Some(entry) = feed.next(self.events)? else { break };
            // Otherwise a stream that was stopped would be reported as damaged.
            check(self.events)?;
            if self.drops.contains(entry.id) {
                drain(entry);
                continue;
            }
            done_count += 1;
            self.take(entry)?;
            self.progress.samples = done_count;
            self.events.on_progress(self.progress);
            check(self.events)?;
        }
        Ok(())
    }

    fn take(&mut self, entry: Entry) -> Result<(), ConvertError> {
        match entry.content {
            EntryContent::Whole(sample, _) => {
                self.progress.bytes += sample.payload.len() as u64;
                Ok(self.writer.write(sample)?)
            }
            EntryContent::LeftOut => {
                self.account.leave_out(self.writer.taken());
                Ok(())
            }
            EntryContent::Bad(bad) => self.skip(bad),
            EntryContent::Long(long) => self.take_long(entry.id.part, long),
        }
    }

    fn take_long(&mut self, part: usize, long: LongSample) -> Result<(), ConvertError> {
        let path = self.source.description().parts[part].path.clone();
        match long {
            LongSample::Streaming { sample, mut payload, .. } => {
                self.stream(&path, &sample, &mut payload)?;
                // The part continues only after the payload was read to its end.
                let _ = io::copy(&mut payload, &mut io::sink());
                Ok(())
            }
            LongSample::At(at) => match at.reopen(self.source, Layout::Packed) {
                Err(bad) => self.skip(bad),
                Ok((sample, _, mut samples)) => {
                    let path = samples.file().unwrap_or(path);
                    self.stream(&path, &sample, samples.payload())
                }
            },
        }
    }

    fn stream(&mut self, path: &Path, sample: &StreamedSample, payload: &mut dyn Read) -> Result<(), ConvertError> {
        let mut watched = Watched { payload, events: self.events, base: self.progress, read_len: 0 };
        let result = self.writer.write_stream(sample, &mut watched);
        check(self.events)?;
        let why = match result {
            Ok(()) => {
                self.progress.bytes += sample.len;
                return Ok(());
            }
            Err(StreamError::Write(error)) => return Err(error.into()),
            Err(StreamError::Source(error)) => error.to_string(),
            Err(other) => other.to_string(),
        };
        self.skip(Bad::new(path, RecordLocation::of_key(&sample.key), why, Reach::Sample))
    }

    fn skip(&mut self, bad: Bad) -> Result<(), ConvertError> {
        if self.on_bad == OnBad::Stop {
            return Err(bad.into());
        }
        let Skipped { path, why } = bad.into();
        let path = path.to_string_lossy().into_owned();
        let Remark { text: why, remedy } = why;
        self.account.lock().push(Note { before: self.writer.taken(), what: Unstored::Bad { path, why, remedy } });
        Ok(())
    }
}

/// Reads a skipped long sample to its end; only then the part continues.
fn drain(entry: Entry) {
    if let EntryContent::Long(LongSample::Streaming { mut payload, .. }) = entry.content {
        let _ = io::copy(&mut payload, &mut io::sink());
    }
}

/// A payload that reports how much of it was read, and fails when the caller wants to stop.
struct Watched<'a> {
    payload: &'a mut dyn Read,
    events: &'a dyn Events,
    base: Progress,
    read_len: u64,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.events.cancelled() {
            return Err(io::Error::other("the conversion was stopped"));
        }
        let len = self.payload.read(buffer)?;
        self.read_len += len as u64;
        self.events.on_progress(Progress { bytes: self.base.bytes + self.read_len, ..self.base });
        Ok(len)
    }
}
