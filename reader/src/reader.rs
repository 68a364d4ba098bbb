//! The reader: a dataset, and how its samples are fetched.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use grainstore_store::Dataset;

use crate::engine::{BufferPool, IoMode};
use crate::engines::{Engines, Width};
use crate::epoch::{Epoch, EpochOptions};
use crate::free_memory::FreeMemory;
use crate::gather::Gather;
use crate::io::{Io, IoChoice};
use crate::plan::{Extents, ExtentsBuilder};
use crate::sources::Sources;
use crate::{Batch, ReadError, Sample};

/// Bytes of buffers kept for the next `get` or `get_batch`.
const POOL_LEN: usize = 16 << 20;

/// How a dataset is read.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// Past the page cache or through it.
    pub io: IoChoice,
    /// Threads that read, for each batch or epoch that is being read; 0 counts as 1.
    pub threads: usize,
}

impl Default for ReaderOptions {
    /// I/O as it suits the dataset and this machine, 16 threads.
    fn default() -> Self {
        Self { io: IoChoice::Auto, threads: 16 }
    }
}

/// Reads the samples of a dataset, from any number of threads at a time.
///
/// Calls do not wait for each other: each takes an engine of its own for as long as it lasts (an engine serves one
/// caller, since waiting for its completions needs it whole). Engines, buffers and open files are kept for the next
/// call.
pub struct Reader {
    dataset: Dataset,
    io: Io,
    sources: Arc<Sources>,
    engines: Engines,
    pool: BufferPool,
    extents: OnceLock<Arc<Extents>>,
}

impl Reader {
    /// Opens the newest generation of the dataset, or the native segment, at `path`.
    ///
    /// # Errors
    /// Where there is no dataset there, or it is damaged.
    pub fn open(path: impl AsRef<Path>, options: ReaderOptions) -> Result<Self, ReadError> {
        Ok(Self::new(Dataset::open(path.as_ref())?, options))
    }

    /// Reads from an opened dataset. Nothing is read yet.
    #[must_use]
    pub fn new(dataset: Dataset, options: ReaderOptions) -> Self {
        let data_len = dataset.segments().iter().map(|segment| segment.file_len()).fold(0, u64::saturating_add);
        let io = Io::decide(options.io, data_len, FreeMemory::now);
        let sources = Arc::new(Sources::new(dataset.clone(), io.mode));
        if io.mode == IoMode::Direct {
            // So that a refusal is known from the start. Any other failure is told by the call that needs the file.
            drop(sources.of(0));
        }
        let threads = NonZeroUsize::new(options.threads).unwrap_or(NonZeroUsize::MIN);
        let pool = BufferPool::new(POOL_LEN);
        Self { dataset, io, sources, engines: Engines::new(threads), pool, extents: OnceLock::new() }
    }

    /// The dataset: its schema, keys, attributes and facts.
    #[must_use]
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// How files are read, and why.
    #[must_use]
    pub fn io(&self) -> Io {
        match self.refusal() {
            Some(why) => Io { mode: IoMode::Buffered, why },
            None => self.io.clone(),
        }
    }

    /// What a user should be told once, as sentences; none most of the time. More may come while samples are read.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        self.refusal().map(|why| format!("{why}; reading through the page cache instead")).into_iter().collect()
    }

    /// Reads one sample.
    ///
    /// # Errors
    /// Where there is no such sample, or its bytes cannot be read or are damaged.
    pub fn get(&self, ordinal: u64) -> Result<Sample, ReadError> {
        self.gather().sample(ordinal)
    }

    /// Reads the sample of a key; `None` where no sample has it.
    ///
    /// # Errors
    /// As [`get`](Self::get), and where the index of keys cannot be read or is damaged.
    pub fn get_by_key(&self, key: &[u8]) -> Result<Option<Sample>, ReadError> {
        self.dataset.find(key)?.map(|ordinal| self.get(ordinal)).transpose()
    }

    /// Reads samples in the order asked, all at once: each is read once however often it is asked for, and samples
    /// that lie close to each other are read together.
    ///
    /// # Errors
    /// As [`get`](Self::get); of several samples that fail, the error names the one of the lowest ordinal.
    pub fn get_batch(&self, ordinals: &[u64]) -> Result<Batch, ReadError> {
        self.gather().batch(ordinals)
    }

    /// Begins an epoch, with a plan and an engine of its own. Loads the index first, where that has not been done.
    ///
    /// # Errors
    /// Where the index is damaged, the number of lanes does not suit the dataset, or no thread can be started.
    pub fn epoch(&self, options: &EpochOptions) -> Result<Epoch, ReadError> {
        let extents = self.extents()?;
        let engine = self.engines.start(Width::Wide)?;
        Epoch::new(options, &self.dataset, Arc::clone(&self.sources), extents, engine)
    }

    /// The dataset's extents, computed once for all epochs. Loads the index, where that has not been done.
    ///
    /// # Errors
    /// Where the index is damaged.
    pub fn extents(&self) -> Result<Arc<Extents>, ReadError> {
        if let Some(extents) = self.extents.get() {
            return Ok(Arc::clone(extents));
        }
        let extents = Arc::new(extents_of(&self.dataset)?);
        Ok(Arc::clone(self.extents.get_or_init(|| extents)))
    }

    fn gather(&self) -> Gather<'_> {
        Gather { dataset: &self.dataset, sources: &self.sources, engines: &self.engines, pool: &self.pool }
    }

    fn refusal(&self) -> Option<String> {
        let path = self.sources.refused()?;
        let shown = grainstore_format::escape_bytes(path.as_os_str().as_encoded_bytes());
        Some(format!("{shown}: the file system refuses direct I/O"))
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.dataset.path()).field("io", &self.io).finish_non_exhaustive()
    }
}

fn extents_of(dataset: &Dataset) -> Result<Extents, ReadError> {
    dataset.load()?;
    let chunks = dataset.chunks()?;
    let mut builder = ExtentsBuilder::new(dataset.geometry().chunk_size.bytes());
    for chunk in 0..chunks.len() {
        let samples = chunks.samples(chunk);
        // Only a sample that crosses out of its chunk can be long; the lengths of the others do not matter.
        let last_len = if chunks.edge(chunk) { dataset.locate(samples.end - 1)?.stored_len } else { 0 };
        builder.chunk(samples.end - samples.start, last_len)?;
    }
    Ok(builder.finish())
}
