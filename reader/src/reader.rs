//! The reader: a dataset or several, and how their samples are fetched.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use grainstore_format::shown_path;
use grainstore_store::{Collection, FreeMemory, IndexMemory, OpenOptions};

use crate::chunk_extents::extents_of;
use crate::engine::{self, BufferPool, IoMode};
use crate::engine_choice::EngineChoice;
use crate::engine_pool::{EnginePool, EngineSpec};
use crate::epoch::{Cache, Epoch, EpochInputs, EpochOptions, EpochPlan, NextEpoch};
use crate::gather::Gather;
use crate::io::{Io, IoChoice};
use crate::open_files::{OpenFiles, Opening};
use crate::patience::Patience;
use crate::plan::Extents;
use crate::single::Single;
use crate::stream::SampleStream;
use crate::{Batch, ReadError, Sample};
use grainstore_host::Shared;

/// Bytes of buffers kept for the next `get` or `get_batch`.
const POOL_LEN: usize = 64 << 20;

/// How a dataset is read.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// Past the page cache, through it, or mapped.
    pub io: IoChoice,
    /// What reads.
    pub engine: EngineChoice,
    /// Threads that read, for each batch or epoch that is being read, where the engine is one of threads; 0 counts
    /// as 1.
    pub threads: usize,
    /// Bytes that are asked of each device at a time by io_uring, for each batch or epoch that is being read.
    pub queue_len: u64,
    /// Whether buffered reads leave nothing behind in the page cache. What it holds already stays, and serves them.
    /// Where the kernel (before Linux 6.14) or the file system cannot do so, reads go on without it, and
    /// [`Reader::notices`] says so. Direct reads never leave anything, mapped ones always do.
    pub dont_cache: bool,
    /// Bytes of memory for samples that epochs have read and later ones need again: whole extents as they are stored,
    /// none of which is ever put out again. With 0 nothing is kept. Where all of the dataset (or subset) fits, a second
    /// epoch reads nothing; else it reads what did not fit. Mapped files need none. A forked process begins its own.
    pub cache_bytes: u64,
    /// Which generation of each dataset is opened, counted from 0, the oldest; `None`: the newest.
    /// [`Dataset::generation_of`](grainstore_store::Dataset::generation_of) finds the one that a state is of.
    pub generation: Option<usize>,
    /// Whether files outside a dataset's parent directory are read, where a dataset that was adopted names them. A
    /// dataset from somebody else could name any file of this machine. What is opened already keeps what it was opened
    /// with.
    pub allow_external: bool,
    /// How long a read of a batch or an epoch may take before it is given up with an error that names it. A single
    /// `get` reads in the caller's thread and waits as long as the system does.
    pub timeout: Duration,
}

impl Default for ReaderOptions {
    /// I/O as it suits the dataset and this machine, 8 MiB in flight or 16 threads, no cache, two minutes for a read.
    fn default() -> Self {
        Self {
            io: IoChoice::Auto,
            engine: EngineChoice::Auto,
            threads: 16,
            queue_len: 8 << 20,
            dont_cache: false,
            cache_bytes: 0,
            generation: None,
            allow_external: false,
            timeout: Duration::from_secs(120),
        }
    }
}

/// Reads the samples of a dataset, or of several end to end, from any number of threads at a time.
///
/// Calls do not wait for each other: `get` reads in the caller's thread, any other call takes an engine of its own for
/// as long as it lasts (an engine serves one caller, since waiting for its completions needs it whole). Engines,
/// buffers and open files are kept for the next call.
pub struct Reader {
    dataset: Collection,
    io: Io,
    open_files: Arc<OpenFiles>,
    engines: EnginePool,
    pool: Arc<BufferPool>,
    extents: OnceLock<Arc<Extents>>,
    cache_bytes: u64,
    cache: Shared<Option<Arc<Cache>>>,
    patience: Patience,
    next: Arc<NextEpoch>,
}

impl Reader {
    /// Opens the dataset, or the native segment, at `path`.
    ///
    /// # Errors
    /// Where there is no dataset or no such generation there, or it is damaged; where its files are to be mapped and cannot be; where an
    /// option cannot be, or the engine asked for cannot be started.
    pub fn open(path: impl AsRef<Path>, options: ReaderOptions) -> Result<Self, ReadError> {
        Self::open_all(&[path], options)
    }

    /// Opens several datasets, to be read end to end as one. All but the first are looked at and
    /// closed again; each is opened when something of it is first needed.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`Collection::open`].
    pub fn open_all(paths: &[impl AsRef<Path>], options: ReaderOptions) -> Result<Self, ReadError> {
        let index_memory = match options.io {
            IoChoice::Mapped => IndexMemory::Mapped,
            IoChoice::Auto | IoChoice::Direct | IoChoice::Buffered => IndexMemory::Owned,
        };
        let ReaderOptions { generation, allow_external, .. } = options;
        let index = OpenOptions { index_memory, generation, allow_external };
        let reader = Self::new(Collection::open(paths, &index)?, options)?;
        match reader.open_files.of(0) {
            // Known from the start. Any other failure is told by the call that needs the file.
            Err(ReadError::Closed { source: source @ engine::FileError::Map { .. } }) => {
                Err(ReadError::Closed { source })
            }
            _ => Ok(reader),
        }
    }

    /// Reads from an opened dataset, or from several. Nothing is read yet.
    ///
    /// # Errors
    /// Where an option cannot be, or the engine asked for cannot be started.
    pub fn new(dataset: impl Into<Collection>, options: ReaderOptions) -> Result<Self, ReadError> {
        let dataset = dataset.into();
        if options.queue_len == 0 {
            let what = "queue is 0 bytes, expected 1 or more: nothing would ever be read".into();
            return Err(ReadError::Option { what });
        }
        if options.timeout.is_zero() {
            let what = "timeout is 0 s, expected more: no read would ever be in time".into();
            return Err(ReadError::Option { what });
        }
        let io = Io::decide(options.io, dataset.segment_bytes(), FreeMemory::now);
        let opening = Opening { mode: io.mode, dont_cache: options.dont_cache };
        let open_files = Arc::new(OpenFiles::new(dataset.clone(), opening));
        if io.mode == IoMode::Direct {
            // So that a refusal is known from the start. Any other failure is told by the call that needs the file.
            drop(open_files.of(0));
        }
        let threads = NonZeroUsize::new(options.threads).unwrap_or(NonZeroUsize::MIN);
        let pool = Arc::new(BufferPool::new(POOL_LEN));
        let patience = Patience::new(options.timeout);
        let spec = EngineSpec { mode: io.mode, choice: options.engine, threads, queue_len: options.queue_len };
        let engines = EnginePool::new(spec)?;
        Ok(Self {
            dataset,
            io,
            open_files,
            engines,
            pool,
            extents: OnceLock::new(),
            cache_bytes: options.cache_bytes,
            cache: Shared::default(),
            patience,
            next: Arc::default(),
        })
    }

    /// What is read, one dataset or several: its schema, keys, attributes and sizes.
    #[must_use]
    pub fn collection(&self) -> &Collection {
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
        let direct = self.refusal().map(|why| format!("{why}; reading through the page cache instead"));
        let caching = self.open_files.caching().map(|path| {
            let shown = shown_path(path);
            format!("{shown}: the system cannot read without caching here; what is read stays in the page cache")
        });
        direct.into_iter().chain(caching).chain(self.engines.notice()).chain(self.dataset.notices()).collect()
    }

    /// Reads one sample.
    ///
    /// # Errors
    /// Where there is no such sample, or its bytes cannot be read or are damaged.
    pub fn get(&self, ordinal: u64) -> Result<Sample, ReadError> {
        self.single().sample(ordinal)
    }

    /// Reads the payload of one sample into memory of the caller's, in place of what it holds: for who reads many, one
    /// after the other, and would give memory back each time. On an error, what is there is of no use.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_into(&self, ordinal: u64, payload: &mut Vec<u8>) -> Result<(), ReadError> {
        self.single().payload(ordinal, payload)
    }

    /// Reads one sample of at most `len_max` bytes where its file is mapped: `copy` makes a copy of its payload, which is
    /// checked and handed out. `None` where it is longer, compressed, or its file is not mapped; and where its entry is
    /// not in memory or its file not open yet, as before the first [`get`](Self::get) of many. Nothing is waited for but
    /// pages of the map.
    ///
    /// # Errors
    /// Where the copy is damaged.
    pub fn get_copied<T: AsRef<[u8]>>(
        &self,
        ordinal: u64,
        len_max: u64,
        copy: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, ReadError> {
        self.single().copied(ordinal, len_max, copy)
    }

    /// The payload of one sample in pieces, for one that is too large to be held. The last piece comes only where the
    /// checksum of all of them is right.
    ///
    /// # Errors
    /// Where there is no such sample or its file cannot be opened. What is wrong with its bytes is told while they are
    /// read.
    pub fn stream(&self, ordinal: u64) -> Result<SampleStream<'_>, ReadError> {
        SampleStream::open(&self.single(), ordinal)
    }

    /// Reads the sample of a key; `None` where no sample has it. Of several datasets, the first that has it gives it.
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

    /// Begins an epoch, with a plan and an engine of its own. The first one loads the index, too, and does not wait for it
    /// where it is large: once the first batch is made, a thread of its own loads it, and until then samples are located
    /// piece by piece. Where it turns out to be damaged, the epoch ends with that error once it is known; no byte is
    /// handed out that fails a checksum either way.
    ///
    /// # Errors
    /// Where the index is damaged; the dataset or the subset is empty; there is no such rank; the state to resume from is
    /// of another epoch; the number of lanes does not suit; the window is smaller than an extent; or no engine or thread
    /// can be started.
    pub fn epoch(&self, options: &EpochOptions) -> Result<Epoch, ReadError> {
        self.dataset.load_if_small()?;
        let inputs = EpochInputs {
            dataset: &self.dataset,
            open_files: &self.open_files,
            extents: self.extents()?,
            engines: &self.engines,
            patience: self.patience.clone(),
            cache: self.cache()?,
            next: &self.next,
        };
        Epoch::new(options, inputs)
    }

    /// What an epoch is going to be: its order and this rank's share of it, to be looked at or audited without reading
    /// any data. The index is read only as far as the order needs it.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch), but for the engine.
    pub fn plan(&self, options: &EpochOptions) -> Result<EpochPlan, ReadError> {
        EpochPlan::of(&self.dataset, self.extents()?, options)
    }

    /// Loads the index whole, where that has not been done: afterwards no call waits for it, nor reads of it.
    ///
    /// # Errors
    /// Where the index is damaged.
    pub fn load(&self) -> Result<(), ReadError> {
        Ok(self.dataset.load()?)
    }

    /// The extents of what is read, computed once for all epochs. Needs little of the index: where a chunk starts.
    ///
    /// # Errors
    /// Where what it needs of the index is damaged.
    pub fn extents(&self) -> Result<Arc<Extents>, ReadError> {
        if let Some(extents) = self.extents.get() {
            return Ok(Arc::clone(extents));
        }
        let extents = Arc::new(extents_of(&self.dataset)?);
        Ok(Arc::clone(self.extents.get_or_init(|| extents)))
    }

    /// What epochs keep, if they are to keep anything.
    fn cache(&self) -> Result<Option<Arc<Cache>>, ReadError> {
        if self.cache_bytes == 0 || self.io.mode == IoMode::Mapped {
            return Ok(None);
        }
        let extents = self.extents()?;
        let Some(mut place) = self.cache.lock() else { return Ok(None) };
        // A forked process does not have the memory of the one that it finds here, and begins its own.
        let here = place.take().filter(|cache| cache.is_home());
        let cache = here.unwrap_or_else(|| Arc::new(Cache::new(self.cache_bytes, extents)));
        Ok(Some(Arc::clone(place.insert(cache))))
    }

    fn single(&self) -> Single<'_> {
        Single { dataset: &self.dataset, open_files: &self.open_files, pool: &self.pool }
    }

    fn gather(&self) -> Gather<'_> {
        Gather {
            dataset: &self.dataset,
            open_files: &self.open_files,
            engines: &self.engines,
            pool: &self.pool,
            patience: &self.patience,
        }
    }

    fn refusal(&self) -> Option<String> {
        Some(format!("{}: the file system refuses direct I/O", shown_path(self.open_files.refused()?)))
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("dataset", &self.dataset).field("io", &self.io).finish_non_exhaustive()
    }
}
