//! The seam between other people's formats and the writer.
//!
//! A [`Source`] pushes its samples into a [`Sink`], in the order in which they are to be stored. The sink passes them
//! to the writer, tells the caller how far it is, and ends the work when the caller wants it to end.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use grainstore_format::Metadata;
use grainstore_writer::{DatasetWriter, Sample, StreamError, StreamedSample};

use crate::ConvertError;

/// Somebody's data, as a row of samples.
pub trait Source {
    /// The file or folder that the data lies in.
    fn origin(&self) -> &Path;

    /// Attributes and fields of every sample, and what is kept with the dataset.
    fn metadata(&self) -> &Metadata;

    /// Whether every sample has a key; else none has.
    fn is_keyed(&self) -> bool;

    /// Number of samples, unreadable ones included, where it is known before they are read.
    fn sample_count(&self) -> Option<u64>;

    /// Pushes all samples into `sink`. The same source pushes the same samples in the same order each time.
    ///
    /// # Errors
    /// Where a sample cannot be read and is not to be skipped, and whatever the sink returns.
    fn write_into(&mut self, sink: &mut Sink<'_>) -> Result<(), ConvertError>;
}

/// What the caller of a conversion hears of it, and how it stops it. Called from the caller's own thread.
pub trait Events {
    /// A sample was taken or skipped, or a part of a long one was read.
    fn on_progress(&self, _progress: Progress) {}

    /// All samples were taken; indexes are written and everything is synced. This can no longer be stopped.
    fn on_finish(&self) {}

    /// Whether to stop. Asked for every sample, and several times a second while waiting for one.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Hears nothing and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvents;

impl Events for NoEvents {}

/// How far a conversion is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Samples taken or skipped.
    pub samples: u64,
    /// Bytes of payload read.
    pub bytes: u64,
}

/// What was left out because it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
    /// Why it cannot be read.
    pub why: String,
}

/// What became of a streamed sample.
#[derive(Debug)]
#[must_use]
pub enum Streamed {
    /// It was written.
    Written,
    /// It could not be read, or had another length than it said. It was not written, others can be.
    Failed(io::Error),
}

/// Takes the samples of a source.
pub struct Sink<'a> {
    writer: &'a mut DatasetWriter,
    events: &'a dyn Events,
    progress: Progress,
    skipped: Vec<Skipped>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(writer: &'a mut DatasetWriter, events: &'a dyn Events) -> Self {
        Self { writer, events, progress: Progress::default(), skipped: Vec::new() }
    }

    pub(crate) fn into_skipped(self) -> Vec<Skipped> {
        self.skipped
    }

    /// Takes the next sample.
    ///
    /// # Errors
    /// Where the caller wants to stop, or the writer cannot go on.
    pub fn write(&mut self, sample: Sample) -> Result<(), ConvertError> {
        let len = sample.payload.len() as u64;
        self.writer.write(sample)?;
        self.advance(1, len);
        self.check()
    }

    /// Takes the next sample from `payload`, which has exactly `sample.len` bytes; for those too large for memory.
    ///
    /// # Errors
    /// Where the caller wants to stop, or the writer cannot go on.
    pub fn write_stream(&mut self, sample: &StreamedSample, payload: &mut dyn Read) -> Result<Streamed, ConvertError> {
        let mut watched = Watched { payload, events: self.events, base: self.progress, read_len: 0 };
        let result = self.writer.write_stream(sample, &mut watched);
        self.check()?;
        match result {
            Ok(()) => {
                self.advance(1, sample.len);
                Ok(Streamed::Written)
            }
            Err(StreamError::Source(error)) => Ok(Streamed::Failed(error)),
            Err(StreamError::Write(error)) => Err(error.into()),
            Err(other) => Ok(Streamed::Failed(io::Error::other(other))),
        }
    }

    /// Notes that the next sample is left out.
    ///
    /// # Errors
    /// Where the caller wants to stop.
    pub fn skip(&mut self, skipped: Skipped) -> Result<(), ConvertError> {
        self.note_skipped(skipped);
        self.advance(1, 0);
        self.check()
    }

    /// Notes something that is left out and that is none of the counted samples, such as a whole folder.
    pub fn note_skipped(&mut self, skipped: Skipped) {
        self.skipped.push(skipped);
    }

    /// Fails where the caller wants to stop; for sources that wait.
    ///
    /// # Errors
    /// [`ConvertError::Interrupted`].
    pub fn check(&self) -> Result<(), ConvertError> {
        if self.events.cancelled() { Err(ConvertError::Interrupted) } else { Ok(()) }
    }

    fn advance(&mut self, samples: u64, bytes: u64) {
        self.progress.samples += samples;
        self.progress.bytes += bytes;
        self.events.on_progress(self.progress);
    }
}

/// A payload that tells how far it was read, and fails where the caller wants to stop.
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
