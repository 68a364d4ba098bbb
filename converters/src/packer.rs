//! Writes the entries of a feed, and records the ones that were skipped.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore_format::Remedy;
use grainstore_sources::{Bad, Layout, Reach, RecordLocation, Remark, Skipped, Source};
use grainstore_writer::{DatasetWriter, StreamError, StreamedSample};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::duplicates::Drops;
use crate::feed::{Entry, EntryContent, Feed, LongSample, check};
use crate::{ConvertError, Events, OnBad, Progress};

/// One conversion's account.
pub(crate) struct Packer<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) writer: &'a mut DatasetWriter,
    pub(crate) events: &'a dyn Events,
    pub(crate) on_bad: OnBad,
    pub(crate) drops: &'a Drops,
    /// Entries to pack or skip, those of an interrupted conversion included.
    pub(crate) entries_max: u64,
    pub(crate) account: Account,
    pub(crate) progress: Progress,
}

/// The samples a conversion has skipped so far, shared with the writer's journal, so that a resumed one keeps the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    bad: Arc<Mutex<Vec<BadNote>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BadNote {
    /// Samples that were taken before it.
    before: u64,
    path: String,
    why: String,
    /// Not part of the journal.
    #[serde(skip)]
    remedy: Option<Box<Remedy>>,
}

impl Account {
    /// Reads the account back; only what was omitted among the first `samples` samples counts. `None` where the note is
    /// no account.
    pub(crate) fn restored(note: &Value, samples: u64) -> Option<Self> {
        let mut bad: Vec<BadNote> = serde_json::from_value(note.clone()).ok()?;
        bad.retain(|bad| bad.before < samples);
        Some(Self { bad: Arc::new(Mutex::new(bad)) })
    }

    /// The note on the first `samples` samples.
    pub(crate) fn note(&self, samples: u64) -> Value {
        let bad: Vec<BadNote> = self.lock().iter().filter(|bad| bad.before < samples).cloned().collect();
        serde_json::to_value(bad).unwrap_or_default()
    }

    /// Where among all that was taken or omitted the bad ones are, ascending.
    pub(crate) fn bad_places(&self) -> Vec<u64> {
        (0..).zip(self.lock().iter()).map(|(number, bad)| bad.before + number).collect()
    }

    pub(crate) fn skipped(&self) -> Vec<Skipped> {
        let skipped = |bad: &BadNote| Skipped {
            path: PathBuf::from(&bad.path),
            why: Remark { text: bad.why.clone(), remedy: bad.remedy.clone() },
        };
        self.lock().iter().map(skipped).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<BadNote>> {
        self.bad.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Packer<'_> {
    /// Takes what the feed gives.
    pub(crate) fn pack(&mut self, feed: &mut dyn Feed) -> Result<(), ConvertError> {
        let mut dealt_with = self.progress.samples;
        while dealt_with < self.entries_max {
            let Some(entry) = feed.next(self.events)? else { break };
            // A stream that was given up is reported like damage.
            check(self.events)?;
            if self.drops.contains(entry.id) {
                pass_over(entry);
                continue;
            }
            dealt_with += 1;
            self.take(entry)?;
            self.progress.samples = dealt_with;
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
            EntryContent::Bad(bad) => self.leave_out(bad),
            EntryContent::Long(long) => self.take_long(entry.id.part, long),
        }
    }

    fn take_long(&mut self, part: usize, long: LongSample) -> Result<(), ConvertError> {
        let path = self.source.description().parts[part].path.clone();
        match long {
            LongSample::Streaming { sample, mut payload, .. } => {
                self.stream(&path, &sample, &mut payload)?;
                // Read to its end, or the part would not continue.
                let _ = io::copy(&mut payload, &mut io::sink());
                Ok(())
            }
            LongSample::At(at) => match at.reopen(self.source, Layout::Packed) {
                Err(bad) => self.leave_out(bad),
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
        let place = RecordLocation {
            name: Some(sample.key.clone()).filter(|key| !key.is_empty()),
            ..RecordLocation::default()
        };
        self.leave_out(Bad::new(path, place, why, Reach::Sample))
    }

    fn leave_out(&mut self, bad: Bad) -> Result<(), ConvertError> {
        if self.on_bad == OnBad::Stop {
            return Err(bad.into());
        }
        let Skipped { path, why } = bad.into();
        let path = path.to_string_lossy().into_owned();
        let Remark { text: why, remedy } = why;
        self.account.lock().push(BadNote { before: self.writer.taken(), path, why, remedy });
        Ok(())
    }
}

/// A long sample that is not wanted is read to its end, or the part would not continue.
fn pass_over(entry: Entry) {
    if let EntryContent::Long(LongSample::Streaming { mut payload, .. }) = entry.content {
        let _ = io::copy(&mut payload, &mut io::sink());
    }
}

/// A payload that reports how far it was read, and fails where the caller wants to stop.
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
