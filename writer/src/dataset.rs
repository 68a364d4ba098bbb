//! The writer of a dataset: takes samples, starts and finishes segments, merges their indexes, commits.

mod begin;

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use grainstore_format::{Fingerprint, MAX_OFFSET, MAX_SEGMENTS, Manifest, SegmentRef};

use crate::emit::Emitted;
use crate::finished::FinishedSegment;
use crate::index::IndexSpec;
use crate::journal::Journal;
use crate::merge::merge;
use crate::names::{index_name, segment_name};
use crate::prepare::{Prepared, prepare};
use crate::segment::SegmentWriter;
use crate::storage::Storage;
use crate::target_directory::TargetDirectory;
use crate::{Sample, StreamError, StreamedSample, WriteError, WriterOptions};

/// The most samples that are prepared as one batch.
const BATCH_SAMPLES: usize = 16384;
/// The approximate number of bytes of such a batch; one batch is prepared while the one before is written.
const BATCH_LEN: u64 = 32 << 20;

/// What a writer wrote. For an existing dataset, what was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The number of samples.
    pub samples: u64,
    /// The number of segments.
    pub segments: u64,
    /// Raw bytes of all payloads.
    pub payload_bytes: u64,
    /// Stored bytes of all payloads.
    pub stored_bytes: u64,
    /// The dataset's fingerprint.
    pub fingerprint: Fingerprint,
    /// The path of the replaced dataset, if it could not be removed. The new dataset is committed nevertheless.
    pub leftover: Option<PathBuf>,
}

/// Writes a dataset, or adds to one. Dropped without [`DatasetWriter::finish`], it removes what it wrote, except
/// finished segments that a journal lists: see [`DatasetWriter::create_journaled`].
///
/// Do not write while holding a lock that other jobs of the same rayon pool need: a thread of that pool may run one of
/// them while it waits for the samples to be prepared.
pub struct DatasetWriter {
    segments: Vec<FinishedSegment>,
    finished: u64, // samples in them
    open: Option<SegmentWriter>,
    pending: Vec<Sample>,
    pending_len: u64,
    prepared: Vec<Prepared>,
    taken: u64,
    failed: bool,
    spec: IndexSpec,
    options: WriterOptions,
    pool: Arc<rayon::ThreadPool>,
    storage: Arc<dyn Storage>,
    journal: Option<Journal>,
    directory: TargetDirectory, // last: files are closed before the directory goes
}

impl DatasetWriter {
    /// Takes the next sample.
    ///
    /// # Errors
    /// If it does not match the schema, or an earlier sample could not be written.
    pub fn write(&mut self, sample: Sample) -> Result<(), WriteError> {
        if self.failed {
            return Err(WriteError::Failed);
        }
        sample.described().check(&self.spec, self.next_ordinal(), sample.payload.len() as u64)?;
        self.pending_len += sample.memory_len();
        self.pending.push(sample);
        self.taken += 1;
        if self.pending.len() >= BATCH_SAMPLES || self.pending_len >= self.batch_len() {
            self.guarded(Self::turn_over)?;
        }
        Ok(())
    }

    /// Takes the next samples, in this order.
    ///
    /// # Errors
    /// As [`DatasetWriter::write`].
    pub fn write_batch(&mut self, samples: Vec<Sample>) -> Result<(), WriteError> {
        samples.into_iter().try_for_each(|sample| self.write(sample))
    }

    /// Takes the next sample from `source`, which has exactly `sample.len` bytes; for samples too large for memory.
    ///
    /// # Errors
    /// `Source` if the source failed or had another length: the sample is not written, but others can be.
    pub fn write_stream(&mut self, sample: &StreamedSample, source: &mut dyn Read) -> Result<(), StreamError> {
        sample.described().check(&self.spec, self.next_ordinal(), sample.len)?;
        self.guarded(Self::drain)?;
        self.guarded(|writer| writer.segment_for(sample.len).map(|_| ()))?;
        let segment = self.open.as_mut().ok_or_else(|| WriteError::bug("the segment for a sample is not open"))?;
        // Set during the call: a source that panics leaves the segment in the middle of a sample.
        self.failed = true;
        let result = segment.push_stream(sample, source);
        self.failed = matches!(result, Err(StreamError::Write(_)));
        self.taken += u64::from(result.is_ok());
        result
    }

    /// The number of samples taken so far, including those that a resumed writer found.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The number of samples that are kept even if this writer fails: those of the segments that its journal lists.
    pub fn safe_samples(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::safe_samples)
    }

    /// Stores notes of the caller in the journal. Whenever a segment is finished, `notes` is called with the number of
    /// samples in the finished segments and returns the note for them; a writer that resumes gets it back. A note is
    /// nested at most 100 levels deep. Without a journal, this does nothing.
    pub fn set_notes(&mut self, notes: impl Fn(u64) -> serde_json::Value + Send + 'static) {
        if let Some(journal) = &mut self.journal {
            journal.set_notes(Box::new(notes));
        }
    }

    /// Removes what was written, including what a journal would keep.
    pub fn discard(mut self) {
        self.open = None;
        self.directory.give_up();
    }

    /// Writes the remaining samples, merges the indexes, and commits: after this the dataset exists under its name.
    ///
    /// # Errors
    /// If there was no sample, a key appears twice, or a file operation failed. The final name is then as it was
    /// before.
    pub fn finish(mut self) -> Result<Summary, WriteError> {
        self.guarded(Self::drain)?;
        self.guarded(Self::close_segment)?;
        if self.segments.is_empty() {
            return Err(WriteError::Empty);
        }
        let manifest = self.manifest()?;
        let total = |count: fn(&Emitted) -> u64| self.segments.iter().map(|segment| count(&segment.emitted)).sum();
        let mut summary = Summary {
            samples: total(|emitted| emitted.sample_count),
            segments: self.segments.len() as u64,
            payload_bytes: total(|emitted| emitted.payload_bytes),
            stored_bytes: total(|emitted| emitted.stored_bytes),
            fingerprint: manifest.fingerprint(),
            leftover: None,
        };
        summary.leftover = self.directory.commit(&manifest)?;
        let Summary { samples, segments, stored_bytes, fingerprint, .. } = &summary;
        tracing::info!(samples, segments, stored_bytes, %fingerprint, "dataset committed");
        Ok(summary)
    }

    /// The manifest of all segments. Merges their indexes if there are two or more.
    fn manifest(&self) -> Result<Manifest, WriteError> {
        let earlier = self.directory.generations();
        let new = self.segments.iter().map(FinishedSegment::reference);
        let refs: Vec<SegmentRef> = self.directory.segments().iter().cloned().chain(new).collect();
        let unmerged = Manifest::new(self.segments[0].index(), refs.clone(), &earlier)?;
        if refs.len() == 1 {
            return Ok(unmerged);
        }
        let paths = refs.iter().map(|segment| self.directory.path().join(index_name(segment)));
        let index = merge(&self.storage, self.directory.path(), paths, &self.spec, unmerged.fingerprint())?;
        Ok(Manifest::new(index, refs, &earlier)?)
    }

    fn batch_len(&self) -> u64 {
        BATCH_LEN.min(self.options.memory_len / 8)
    }

    /// A failure is final. spec.md: WR-2.
    fn guarded<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, WriteError>) -> Result<T, WriteError> {
        if self.failed {
            return Err(WriteError::Failed);
        }
        self.failed = true; // also where the step panics
        let result = step(self);
        self.failed = result.is_err();
        result
    }

    /// Prepares the pending samples while those prepared before are written.
    fn turn_over(&mut self) -> Result<(), WriteError> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_len = 0;
        let compression = self.options.compression;
        let ready = std::mem::take(&mut self.prepared);
        let pool = Arc::clone(&self.pool);
        let mut next = Ok(Vec::new());
        let placed = pool.in_place_scope(|scope| {
            scope.spawn(|_| next = catch_unwind(AssertUnwindSafe(|| prepare(pending, compression))));
            ready.into_iter().try_for_each(|sample| self.place(sample))
        });
        placed?;
        self.prepared = next.map_err(|_| WriteError::Threads("one that prepares samples panicked".into()))?;
        Ok(())
    }

    fn drain(&mut self) -> Result<(), WriteError> {
        self.turn_over()?;
        self.turn_over()
    }

    fn place(&mut self, prepared: Prepared) -> Result<(), WriteError> {
        self.segment_for(prepared.sample.payload.len() as u64)?.push(prepared)
    }

    /// The segment that the next sample goes to.
    fn segment_for(&mut self, stored_len: u64) -> Result<&mut SegmentWriter, WriteError> {
        let full = self.open.as_ref().is_some_and(|segment| {
            segment.end_with(stored_len) > self.options.segment_size.min(MAX_OFFSET + 1) && !segment.is_empty()
        });
        if full {
            self.close_segment()?;
        }
        match &mut self.open {
            Some(segment) => Ok(segment),
            empty => {
                let name = segment_name(self.directory.first_number() + self.segments.len() as u64);
                let path = self.directory.path().join(name);
                Ok(empty.insert(SegmentWriter::create(&self.storage, path, self.spec.clone())?))
            }
        }
    }

    fn close_segment(&mut self) -> Result<(), WriteError> {
        // A segment in which a streamed sample failed may be empty; its file is then removed.
        let Some(segment) = self.open.take().filter(|segment| !segment.is_empty()) else { return Ok(()) };
        if (self.directory.segments().len() + self.segments.len()) as u64 == MAX_SEGMENTS {
            let found = MAX_SEGMENTS + 1;
            return Err(grainstore_format::FormatError::Limit {
                what: "number of segments",
                found,
                limit: MAX_SEGMENTS,
            }
            .into());
        }
        let name = segment_name(self.directory.first_number() + self.segments.len() as u64);
        let first = self.directory.sample_count() + self.finished;
        let emitted = segment.finish().map_err(|error| counted_from(first, error))?;
        self.segments.push(FinishedSegment { name, emitted });
        self.finished += emitted.sample_count;
        self.write_journal()
    }

    fn write_journal(&mut self) -> Result<(), WriteError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.write(&self.storage, self.directory.path(), &self.segments)?;
        self.directory.keep();
        Ok(())
    }

    /// The ordinal of the next sample.
    fn next_ordinal(&self) -> u64 {
        self.directory.sample_count() + self.taken
    }
}

/// Changes the ordinals in an error from those of one segment to those of the dataset.
fn counted_from(first: u64, error: WriteError) -> WriteError {
    match error {
        WriteError::DuplicateKey { key, first: one, second } => {
            WriteError::DuplicateKey { key, first: first + one, second: first + second }
        }
        WriteError::Sample { ordinal, key, what } => WriteError::Sample { ordinal: first + ordinal, key, what },
        other => other,
    }
}
