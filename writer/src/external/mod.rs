//! Adopts external files: writes an index of their samples and leaves the bytes where they are.
//!
//! ```text
//! train-0.tar  -- samples -->  ExternalSegment 0  -->  00000.idx --+
//! train-1.tar  -- samples -->  ExternalSegment 1  -->  00001.idx --+-->  index-*.idx, manifest.json
//! ...                          in threads of the caller            |
//! ```
//! The caller reads the files, and gives the location and the checksum of each sample. The dataset is committed like a
//! native one. spec.md: EXT-1 to EXT-3, FIL-3, MAN-4, section 10.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore_format::{IndexRef, MAX_SEGMENTS, Manifest, SegmentRef};

use crate::commit::PartialDirectory;
use crate::emit::Emitted;
use crate::index::IndexSpec;
use crate::merge::merge;
use crate::storage::Storage;
use crate::{DiskStorage, Summary, WriteError, WriterOptions};

mod file;
mod segment;

pub use file::{ExternalFile, ExternalSample};
use segment::Written;
pub use segment::{ExternalSegment, FinishedExternal};

/// Writes a dataset whose samples are in external files. Dropped without [`ExternalWriter::finish`], it removes what it
/// wrote.
///
/// Several files can be indexed at once, in threads of the caller: [`WriterOptions::jobs`] of them share
/// [`WriterOptions::memory_len`]. Segment size and compression are ignored.
pub struct ExternalWriter {
    shared: Arc<Shared>,
}

/// The state that the writer and its segments share.
struct Shared {
    /// The numbers of the segments that are under construction or written.
    begun: Mutex<BTreeSet<usize>>,
    failed: AtomicBool,
    /// The properties of the merged index.
    spec: IndexSpec,
    /// The properties of the segments' own indexes, with a share of the memory.
    segment_spec: IndexSpec,
    storage: Arc<dyn Storage>,
    directory: PartialDirectory,
}

impl ExternalWriter {
    /// Begins the dataset `target` on this machine's disk.
    ///
    /// # Errors
    /// If `target` exists (unless it is a dataset and `overwrite` is set), or files cannot be written.
    pub fn create(target: &Path, options: WriterOptions) -> Result<Self, WriteError> {
        Self::create_on(Arc::new(DiskStorage), target, options)
    }

    /// Begins the dataset `target` on `storage`.
    ///
    /// # Errors
    /// As [`ExternalWriter::create`].
    pub fn create_on(storage: Arc<dyn Storage>, target: &Path, options: WriterOptions) -> Result<Self, WriteError> {
        let spec = IndexSpec::of(&options);
        options.metadata.encode()?; // invalid metadata is refused before anything is written
        let share = spec.memory_len / jobs(&options);
        let segment_spec = IndexSpec { memory_len: share, ..spec.clone() };
        let directory = PartialDirectory::create(&storage, target, options.overwrite)?;
        let begun = Mutex::default();
        let failed = AtomicBool::new(false);
        Ok(Self { shared: Arc::new(Shared { begun, failed, spec, segment_spec, storage, directory }) })
    }

    /// Begins segment `number` of the dataset, counted from 0. The numbers of segments that are dropped or have no
    /// samples are skipped.
    ///
    /// # Errors
    /// If it was started before, or the number exceeds the limit of a dataset.
    pub fn segment(&self, number: usize) -> Result<ExternalSegment, WriteError> {
        let wrong = |what: String| Err(WriteError::External { number, what });
        if number as u64 >= MAX_SEGMENTS {
            return wrong(format!("a dataset has {MAX_SEGMENTS} segments at most"));
        }
        if !self.shared.begun().insert(number) {
            return wrong("it was started before".into());
        }
        Ok(ExternalSegment::new(number, Arc::clone(&self.shared)))
    }

    /// Merges the indexes and commits: after this the dataset exists under its name. `finished` holds everything that
    /// [`ExternalSegment::finish`] returned for this writer, in any order; the numbers give the order.
    ///
    /// # Errors
    /// If there was no sample, a segment is missing or not finished, a key appears twice, or a file operation failed.
    /// The final name is then as it was before, except if only the last step failed, the sync of the containing
    /// directory: the dataset is there, but a crash may still remove it.
    pub fn finish(self, finished: Vec<FinishedExternal>) -> Result<Summary, WriteError> {
        let segments = self.shared.in_order(finished)?;
        // A caller that still holds a segment could write to the dataset.
        let shared = Arc::into_inner(self.shared).ok_or(WriteError::Failed)?;
        let manifest = shared.manifest(&segments)?;
        let total = |count: fn(&Emitted) -> u64| segments.iter().map(|segment| count(&segment.emitted)).sum();
        let mut summary = Summary {
            samples: total(|emitted| emitted.sample_count),
            segments: segments.len() as u64,
            payload_bytes: total(|emitted| emitted.payload_bytes),
            stored_bytes: total(|emitted| emitted.stored_bytes),
            fingerprint: manifest.fingerprint(),
            leftover: None,
        };
        summary.leftover = shared.directory.commit(&manifest)?;
        Ok(summary)
    }
}

impl Shared {
    fn begun(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        // A panic elsewhere does not damage a set of numbers.
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, number: usize) {
        self.begun().remove(&number);
    }

    /// A failure is final, for all segments. spec.md: WR-2.
    fn guarded<T>(&self, step: impl FnOnce() -> Result<T, WriteError>) -> Result<T, WriteError> {
        if self.failed.load(Ordering::Acquire) {
            return Err(WriteError::Failed);
        }
        let result = step();
        if result.is_err() {
            self.failed.store(true, Ordering::Release);
        }
        result
    }

    /// The segments with samples, by number. Fails if one that was started is missing.
    fn in_order(&self, finished: Vec<FinishedExternal>) -> Result<Vec<Written>, WriteError> {
        let mut written: Vec<(usize, Written)> =
            finished.into_iter().filter_map(|segment| Some((segment.number, segment.written?))).collect();
        written.sort_by_key(|(number, _)| *number);
        let missing = |number: &&usize| written.binary_search_by_key(*number, |(number, _)| *number).is_err();
        if let Some(&number) = self.begun().iter().find(missing) {
            let what = "it was started, but is not among the finished segments".into();
            return Err(WriteError::External { number, what });
        }
        if self.failed.load(Ordering::Acquire) {
            return Err(WriteError::Failed);
        }
        Ok(written.into_iter().map(|(_, written)| written).collect())
    }

    /// The manifest. Its index is that of the only segment, or the merged one, which is written here. spec.md: MAN-4.
    fn manifest(&self, segments: &[Written]) -> Result<Manifest, WriteError> {
        let first = segments.first().ok_or(WriteError::Empty)?;
        let refs: Vec<SegmentRef> = segments.iter().map(Written::reference).collect();
        let unmerged = Manifest::new(first.index(), refs.clone(), &[])?;
        if segments.len() == 1 {
            return Ok(unmerged);
        }
        let directory = self.directory.path();
        let paths = segments.iter().map(|segment| directory.join(segment.index().file));
        let index: IndexRef = merge(&self.storage, directory, paths, &self.spec, unmerged.fingerprint())?;
        Ok(Manifest::new(index, refs, &[])?)
    }
}

/// The number of segments that are written at once.
fn jobs(options: &WriterOptions) -> u64 {
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    options.jobs.unwrap_or_else(cores).get() as u64
}
