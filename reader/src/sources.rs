//! The open files of a dataset's segments, shared by everything that reads from them.
//!
//! A file is opened when it is first needed and checked then. No more than [`OPEN_MAX`] are kept open, whatever the
//! number of segments: the oldest makes room, and closes when the last request to it is done.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use grainstore_store::Dataset;

use crate::ReadError;
use crate::engine::{IoMode, Source};

/// A quarter of the usual limit of 1024 descriptors; requests in flight may hold as many again.
pub(crate) const OPEN_MAX: usize = 256;

/// Opens segments' files and remembers them.
pub(crate) struct Sources {
    dataset: Dataset,
    mode: IoMode,
    open: Mutex<Open>,
    /// The first file that direct I/O was refused for.
    refused: OnceLock<PathBuf>,
}

#[derive(Default)]
struct Open {
    by_segment: HashMap<usize, Arc<Source>>,
    oldest_first: VecDeque<usize>,
}

impl Sources {
    pub(crate) fn new(dataset: Dataset, mode: IoMode) -> Self {
        Self { dataset, mode, open: Mutex::default(), refused: OnceLock::new() }
    }

    /// The open file of a segment.
    pub(crate) fn of(&self, segment: usize) -> Result<Arc<Source>, ReadError> {
        if let Some(source) = self.lock().by_segment.get(&segment) {
            return Ok(Arc::clone(source));
        }
        // Without the lock: on a slow file system others go on. Two may open the same file; one is dropped.
        let source = Arc::new(self.open(segment)?);
        let dropped = self.lock().put(segment, &source);
        dropped.iter().chain([&source]).for_each(|source| self.note(source));
        Ok(source)
    }

    /// How files are read: buffered as soon as direct I/O was refused for one of them.
    pub(crate) fn mode(&self) -> IoMode {
        if self.refused().is_some() { IoMode::Buffered } else { self.mode }
    }

    /// The most requests that may be in flight at once, so that their files do not exhaust the descriptors.
    pub(crate) fn requests_max(&self) -> usize {
        if self.dataset.segments().len() <= OPEN_MAX { usize::MAX } else { OPEN_MAX }
    }

    /// A file that direct I/O was asked for and refused, at opening or by a read since.
    pub(crate) fn refused(&self) -> Option<&Path> {
        self.lock().by_segment.values().for_each(|source| self.note(source));
        self.refused.get().map(PathBuf::as_path)
    }

    fn open(&self, segment: usize) -> Result<Source, ReadError> {
        self.dataset.segment_file(segment)?;
        let path = self.dataset.segments().get(segment).map_or_else(|| self.dataset.path(), |segment| segment.path());
        Source::open(path, self.mode).map_err(|source| ReadError::Closed { source })
    }

    fn note(&self, source: &Source) {
        if source.fell_back() {
            self.refused.get_or_init(|| source.path().to_owned());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Nothing under the lock leaves it half done, so what a panicking thread left is whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Returns what had to make room.
    fn put(&mut self, segment: usize, source: &Arc<Source>) -> Option<Arc<Source>> {
        if self.by_segment.insert(segment, Arc::clone(source)).is_none() {
            self.oldest_first.push_back(segment);
        }
        if self.by_segment.len() <= OPEN_MAX {
            return None;
        }
        self.oldest_first.pop_front().and_then(|oldest| self.by_segment.remove(&oldest))
    }
}
