//! The writer of a dataset: takes samples, rolls segments, merges their indexes, commits.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::{
    AttributeValue, FileKind, Fingerprint, Header, IndexRef, MAX_KEY_LEN, MAX_OFFSET, MAX_SEGMENTS, Manifest,
    SegmentKind, SegmentRef,
};

use crate::commit::Workplace;
use crate::emit::{Emitted, emit};
use crate::index::{IndexBuilder, IndexSpec};
use crate::output::Output;
use crate::prepare::{Prepared, prepare};
use crate::rows::SegmentRows;
use crate::segment::SegmentWriter;
use crate::storage::Storage;
use crate::{DiskStorage, Sample, StreamError, StreamedSample, WriteError, WriterOptions};

/// Samples are prepared in batches of at most so many.
const BATCH_SAMPLES: usize = 16384;
/// ... and of about so many bytes; one batch is prepared while the one before is written.
const BATCH_LEN: u64 = 32 << 20;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Samples.
    pub samples: u64,
    /// Segments.
    pub segments: u64,
    /// Raw bytes of all payloads.
    pub payload_bytes: u64,
    /// Stored bytes of all payloads.
    pub stored_bytes: u64,
    /// The dataset's fingerprint.
    pub fingerprint: Fingerprint,
    /// Where the replaced dataset still lies, if it could not be removed. The new one is in place all the same.
    pub leftover: Option<PathBuf>,
}

/// Writes a dataset. Dropped without [`DatasetWriter::finish`], it removes what it wrote.
pub struct DatasetWriter {
    segments: Vec<Finished>,
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
    workplace: Workplace, // last: files are closed before the directory goes
}

/// A segment under its final name.
struct Finished {
    name: String,
    emitted: Emitted,
}

impl DatasetWriter {
    /// Begins the dataset `target` on this machine's disk.
    ///
    /// # Errors
    /// Where something stands there already (unless it is a dataset and is to be replaced), or cannot be written.
    pub fn create(target: &Path, options: WriterOptions) -> Result<Self, WriteError> {
        Self::create_on(Arc::new(DiskStorage), target, options)
    }

    /// Begins the dataset `target` on `storage`.
    ///
    /// # Errors
    /// As [`DatasetWriter::create`].
    pub fn create_on(storage: Arc<dyn Storage>, target: &Path, options: WriterOptions) -> Result<Self, WriteError> {
        let threads = options.jobs.map_or(0, |jobs| jobs.get());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| WriteError::Threads(error.to_string()))?;
        let spec = IndexSpec {
            geometry: options.geometry,
            metadata: Arc::new(options.metadata.clone()),
            keyed: options.keyed,
            field_columns: options.metadata.schema.fields().len() > 1,
            memory_len: options.memory_len,
        };
        options.metadata.encode()?; // what could not be read back is refused before anything is written
        let workplace = Workplace::create(&storage, target, options.overwrite)?;
        Ok(Self {
            segments: Vec::new(),
            open: None,
            pending: Vec::new(),
            pending_len: 0,
            prepared: Vec::new(),
            taken: 0,
            failed: false,
            spec,
            options,
            pool: Arc::new(pool),
            storage,
            workplace,
        })
    }

    /// Takes the next sample.
    ///
    /// # Errors
    /// Where it does not agree with the schema, or an earlier one could not be written.
    pub fn write(&mut self, sample: Sample) -> Result<(), WriteError> {
        if self.failed {
            return Err(WriteError::Failed);
        }
        self.check_sample(&sample.key, &sample.attributes, &sample.fields, sample.payload.len() as u64)?;
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
    /// `Source` where the source failed or had another length: the sample is not written, others can be.
    pub fn write_stream(&mut self, sample: &StreamedSample, source: &mut dyn Read) -> Result<(), StreamError> {
        self.check_sample(&sample.key, &sample.attributes, &sample.fields, sample.len)?;
        self.guarded(Self::drain)?;
        self.guarded(|writer| writer.segment_for(sample.len).map(|_| ()))?;
        let Some(segment) = self.open.as_mut() else { return Err(WriteError::Failed.into()) };
        // Set for the time being: a source that panics leaves the segment in the middle of a sample.
        self.failed = true;
        let result = segment.push_stream(sample, source);
        self.failed = matches!(result, Err(StreamError::Write(_)));
        self.taken += u64::from(result.is_ok());
        result
    }

    /// Samples taken so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Writes what is left, merges, and commits: after this the dataset stands under its name.
    ///
    /// # Errors
    /// Where there was no sample, a key stands twice, or the disk refused; then nothing stands there that did not before.
    pub fn finish(mut self) -> Result<Summary, WriteError> {
        self.guarded(Self::drain)?;
        self.guarded(Self::close_segment)?;
        if self.segments.is_empty() {
            return Err(WriteError::Empty);
        }
        let refs: Vec<SegmentRef> = self.segments.iter().map(Finished::reference).collect();
        let unmerged = Manifest::new(self.segments[0].index(), refs.clone(), &[])?;
        let manifest = if self.segments.len() == 1 {
            unmerged
        } else {
            let paths = self.segments.iter().map(|segment| self.workplace.path().join(&segment.name));
            let index = merge(&self.storage, self.workplace.path(), paths, &self.spec, unmerged.fingerprint())?;
            Manifest::new(index, refs, &[])?
        };
        let total = |count: fn(&Emitted) -> u64| self.segments.iter().map(|segment| count(&segment.emitted)).sum();
        let mut summary = Summary {
            samples: total(|emitted| emitted.sample_count),
            segments: self.segments.len() as u64,
            payload_bytes: total(|emitted| emitted.payload_bytes),
            stored_bytes: total(|emitted| emitted.stored_bytes),
            fingerprint: manifest.fingerprint(),
            leftover: None,
        };
        summary.leftover = self.workplace.publish(&manifest)?;
        Ok(summary)
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

    /// Prepares the pending samples while the ones prepared before are placed.
    fn turn_over(&mut self) -> Result<(), WriteError> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_len = 0;
        let compression = self.options.compression;
        let ready = std::mem::take(&mut self.prepared);
        let pool = Arc::clone(&self.pool);
        let (placed, next) = std::thread::scope(|scope| {
            let preparing = std::thread::Builder::new()
                .spawn_scoped(scope, || pool.install(|| prepare(pending, compression)))
                .map_err(|error| WriteError::Threads(error.to_string()));
            let placed = ready.iter().try_for_each(|sample| self.place(sample));
            (placed, preparing.map(std::thread::ScopedJoinHandle::join))
        });
        placed?;
        self.prepared = next?.map_err(|_| WriteError::Threads("one that prepares samples panicked".into()))?;
        Ok(())
    }

    fn drain(&mut self) -> Result<(), WriteError> {
        self.turn_over()?;
        self.turn_over()
    }

    fn place(&mut self, prepared: &Prepared) -> Result<(), WriteError> {
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
                let path = self.workplace.path().join(segment_name(self.segments.len()));
                Ok(empty.insert(SegmentWriter::create(&self.storage, path, self.spec.clone())?))
            }
        }
    }

    fn close_segment(&mut self) -> Result<(), WriteError> {
        // One in which a streamed sample failed may be empty; its file goes with it.
        let Some(segment) = self.open.take().filter(|segment| !segment.is_empty()) else { return Ok(()) };
        if self.segments.len() as u64 == MAX_SEGMENTS {
            let found = MAX_SEGMENTS + 1;
            return Err(grainstore_format::FormatError::Limit {
                what: "number of segments",
                found,
                limit: MAX_SEGMENTS,
            }
            .into());
        }
        let name = segment_name(self.segments.len());
        let first = self.segments.iter().map(|segment| segment.emitted.sample_count).sum();
        let emitted = segment.finish().map_err(|error| counted_from(first, error))?;
        self.segments.push(Finished { name, emitted });
        Ok(())
    }

    fn check_sample(
        &self,
        key: &[u8],
        attributes: &[Option<AttributeValue>],
        fields: &[Option<Range<u64>>],
        payload_len: u64,
    ) -> Result<(), WriteError> {
        let schema = &self.options.metadata.schema;
        let wrong = |what: String| Err(WriteError::Sample { ordinal: self.taken, key: key.to_vec(), what });
        if self.options.keyed && !(1..=MAX_KEY_LEN).contains(&key.len()) {
            let mut short = key.to_vec();
            short.truncate(64);
            let what = format!("its key has {} bytes; keys have 1 to {MAX_KEY_LEN}", key.len());
            return Err(WriteError::Sample { ordinal: self.taken, key: short, what });
        }
        if !self.options.keyed && !key.is_empty() {
            return wrong("it has a key, in a dataset without keys".into());
        }
        if attributes.len() != schema.attributes().len() {
            return wrong(format!("{} attributes, the schema has {}", attributes.len(), schema.attributes().len()));
        }
        for (attribute, value) in schema.attributes().iter().zip(attributes) {
            if value.is_some_and(|value| attribute.kind.encode(value).is_none()) {
                return wrong(format!("attribute \"{}\" is {value:?}, no {}", attribute.name, attribute.kind.name()));
            }
        }
        if schema.fields().len() == 1 {
            let whole = fields.is_empty() || fields == [Some(0..payload_len)];
            return if whole { Ok(()) } else { wrong("the one field is not the whole payload".into()) };
        }
        if fields.len() != schema.fields().len() {
            return wrong(format!("{} fields, the schema has {}", fields.len(), schema.fields().len()));
        }
        let outside = fields.iter().flatten().find(|range| range.start > range.end || range.end > payload_len);
        outside.map_or(Ok(()), |range| wrong(format!("field {range:?} is not inside its {payload_len} bytes")))
    }
}

impl Finished {
    fn index(&self) -> IndexRef {
        IndexRef { file: self.name.clone(), fingerprint: self.emitted.fingerprint }
    }

    fn reference(&self) -> SegmentRef {
        SegmentRef {
            kind: SegmentKind::Native,
            path: self.name.clone(),
            file_len: self.emitted.file_len,
            sample_count: self.emitted.sample_count,
            fingerprint: self.emitted.fingerprint,
        }
    }
}

fn segment_name(number: usize) -> String {
    format!("{number:05}.seg")
}

/// Ordinals in an error of one segment, counted through the dataset.
fn counted_from(first: u64, error: WriteError) -> WriteError {
    match error {
        WriteError::DuplicateKey { key, first: one, second } => {
            WriteError::DuplicateKey { key, first: first + one, second: first + second }
        }
        WriteError::Sample { ordinal, key, what } => WriteError::Sample { ordinal: first + ordinal, key, what },
        other => other,
    }
}

/// Writes the merged index of segments whose own indexes are finished; `fingerprint` is the dataset's.
pub(crate) fn merge(
    storage: &Arc<dyn Storage>,
    directory: &Path,
    segments: impl Iterator<Item = PathBuf>,
    spec: &IndexSpec,
    fingerprint: Fingerprint,
) -> Result<IndexRef, WriteError> {
    let mut builder = IndexBuilder::new(spec.clone(), storage, directory.join("merged.spill.tmp"));
    for path in segments {
        let mut rows = SegmentRows::open(storage.as_ref(), path)?;
        while let Some(row) = rows.next()? {
            builder.push(&row)?;
        }
        builder.end_segment(rows.data_end)?;
    }
    let file = format!("index-{fingerprint}.idx");
    let mut output = Output::create(storage, directory.join(&file))?;
    output.write(&Header { kind: FileKind::Index, geometry: spec.geometry }.encode())?;
    let emitted = emit(builder, &mut output)?;
    output.publish()?;
    Ok(IndexRef { file, fingerprint: emitted.fingerprint })
}
