//! The reader: a dataset or several, and how their samples are fetched.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use grainstore_format::shown_path;
use grainstore_store::{Collection, IndexMemory, OpenOptions};

use crate::access::{Access, ReaderAccess};
use crate::chunk_extents::extents_of;
use crate::engine::{self, BufferPool, IoMode};
use crate::engine_choice::EngineChoice;
use crate::epoch::{Cache, Epoch, EpochInputs, EpochOptions, EpochPlan, NextEpoch};
use crate::gather::Gather;
use crate::io::{Io, IoChoice};
use crate::plan::Extents;
use crate::read_timeout::ReadTimeout;
use crate::sample_file::SampleFile;
use crate::single::{MappedPayload, Single};
use crate::stream::SampleStream;
use crate::{Batch, ReadError, Sample};
use grainstore_host::ForkLock;

/// Bytes of buffers kept for the next `get`, `get_batch` or batch of an epoch.
const POOL_LEN: usize = 64 << 20;

/// How a dataset is read.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// Direct, buffered or mapped I/O.
    pub io: IoChoice,
    /// Which engine reads.
    pub engine: EngineChoice,
    /// Number of reading threads for each batch or epoch in progress, if the engine uses threads; 0 counts as 1.
    pub threads: usize,
    /// Bytes that io_uring has in flight on each device, for each batch or epoch in progress.
    pub queue_len: u64,
    /// Whether buffered reads leave nothing in the page cache. What is already there stays, and is used. If the kernel
    /// (before Linux 6.14) or the file system does not support this, reads continue without it, and [`Reader::notices`]
    /// reports so. Direct reads never leave anything in the page cache, mapped ones always do.
    pub dont_cache: bool,
    /// Memory of the cache in bytes: it keeps extents that an epoch has read, as they are stored, for later epochs.
    /// Nothing is ever evicted. With 0 there is no cache. If all of the dataset (or subset) fits, a second epoch reads
    /// nothing; otherwise it reads what did not fit. Mapped files need no cache. A forked process starts its own.
    pub cache_bytes: u64,
    /// Which generation of each dataset is opened, counted from 0, the oldest; `None`: the newest.
    /// [`Dataset::generation_of`](grainstore_store::Dataset::generation_of) finds the one that a state is of.
    pub generation: Option<usize>,
    /// Whether an adopted dataset may name files outside its parent directory. A dataset from an untrusted origin could
    /// name any file of this machine. A dataset that is already open keeps the setting that it was opened with.
    pub allow_external: bool,
    /// How long a read of a batch or an epoch may take before it ends with an error that names it. A single
    /// `get` reads in the caller's thread and waits as long as the system does.
    pub timeout: Duration,
}

impl Default for ReaderOptions {
    /// I/O chosen for the dataset and this machine, 8 MiB in flight or 16 threads, no cache, two minutes for a read.
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
    access: ReaderAccess,
    pool: Arc<BufferPool>,
    extents: OnceLock<Arc<Extents>>,
    cache_bytes: u64,
    cache: ForkLock<Option<Arc<Cache>>>,
    timeout: ReadTimeout,
    next: Arc<NextEpoch>,
}

impl Reader {
    /// Opens the dataset, or the native segment, at `path`.
    ///
    /// # Errors
    /// If there is no dataset or no such generation, or it is damaged; if its files should be mapped and cannot be; if
    /// an option is invalid, or the requested engine cannot be started.
    pub fn open(path: impl AsRef<Path>, options: ReaderOptions) -> Result<Self, ReadError> {
        Self::open_all(&[path], options)
    }

    /// Opens several datasets, to be read end to end as one. All except the first are checked and
    /// closed again; each is opened when it is first needed.
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
        match reader.access.now().open_files.of(0) {
            // Reported at once. Any other failure is reported by the call that needs the file.
            Err(ReadError::CannotOpen { source: source @ engine::FileError::Map { .. } }) => {
                Err(ReadError::CannotOpen { source })
            }
            _ => Ok(reader),
        }
    }

    /// Reads from an opened dataset, or from several. Nothing is read yet.
    ///
    /// # Errors
    /// If an option is invalid, or the requested engine cannot be started.
    pub fn new(dataset: impl Into<Collection>, options: ReaderOptions) -> Result<Self, ReadError> {
        let dataset = dataset.into();
        if options.queue_len == 0 {
            return Err(ReadError::NoQueue);
        }
        if options.timeout.is_zero() {
            return Err(ReadError::NoTimeout);
        }
        let access = ReaderAccess::new(&dataset, &options)?;
        let now = access.now();
        if now.io.mode == IoMode::Direct {
            // Opened so that a refusal is known at once. Any other failure is reported by the call that needs the file.
            drop(now.open_files.of(0));
        }
        let pool = Arc::new(BufferPool::new(POOL_LEN));
        let timeout = ReadTimeout::new(options.timeout);
        let samples = dataset.sample_count();
        tracing::debug!(samples, segments = dataset.segment_count(), io = %now.io, "reader made");
        Ok(Self {
            dataset,
            access,
            pool,
            extents: OnceLock::new(),
            cache_bytes: options.cache_bytes,
            cache: ForkLock::default(),
            timeout,
            next: Arc::default(),
        })
    }

    /// The datasets that are read, one or several: schema, keys, attributes and sizes.
    #[must_use]
    pub fn collection(&self) -> &Collection {
        &self.dataset
    }

    /// How files are read now, and why. With [`IoChoice::Auto`] it may change once, to mapped files.
    #[must_use]
    pub fn io(&self) -> Io {
        match self.refusal() {
            Some(why) => Io { mode: IoMode::Buffered, why },
            None => self.access.now().io.clone(),
        }
    }

    /// Notices for the user, as sentences; usually none. More may come while samples are read.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let direct = self.refusal().map(|why| format!("{why}; reading through the page cache instead"));
        let access = self.access.now();
        let caching = access.open_files.caching().map(|path| {
            let shown = shown_path(path);
            format!("{shown}: the system cannot read without caching here; what is read stays in the page cache")
        });
        direct.into_iter().chain(caching).chain(access.engines.notice()).chain(self.dataset.notices()).collect()
    }

    /// Reads one sample.
    ///
    /// # Errors
    /// If there is no such sample, or its bytes cannot be read or are damaged.
    pub fn get(&self, ordinal: u64) -> Result<Sample, ReadError> {
        let len = |read: &Result<Sample, _>| read.as_ref().map_or(0, |sample| sample.payload.len() as u64);
        self.access.read(&self.dataset, 1, len, |access| self.single_by(access).sample(ordinal))
    }

    /// Reads the payload of one sample into `payload`, whose bytes are replaced: for callers that read many samples,
    /// one after the other, and want to reuse the memory. After an error, its bytes are arbitrary.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_into(&self, ordinal: u64, payload: &mut Vec<u8>) -> Result<(), ReadError> {
        let read = |access| {
            let result = self.single_by(access).payload(ordinal, payload);
            (result, payload.len() as u64)
        };
        self.access.read(&self.dataset, 1, |(_, len)| *len, read).0
    }

    /// The payload of one sample in its mapped file, to be copied to memory of the caller's. `None` if it is compressed
    /// or not mapped, or if its entry is not in memory or its file not open yet, as before the first [`get`](Self::get):
    /// this waits for nothing.
    #[must_use]
    pub fn mapped(&self, ordinal: u64) -> Option<MappedPayload<'_>> {
        self.single().mapped(ordinal)
    }

    /// The payload of one sample as a stream, for a sample that is too large for memory. The last bytes are returned
    /// only if the checksum of all of them is right.
    ///
    /// # Errors
    /// If there is no such sample or its file cannot be opened. Damage is reported while the bytes are read.
    pub fn stream(&self, ordinal: u64) -> Result<SampleStream<'_>, ReadError> {
        SampleStream::open(&self.single(), ordinal)
    }

    /// One sample as a file, or one field of it, for decoders that read only parts of it; `None` if the sample lacks
    /// the field. [`SampleFile`] says which of its bytes are checked. It stays valid without this reader.
    ///
    /// # Errors
    /// If there is no such sample or field, its file cannot be opened, or a short or compressed sample is damaged.
    pub fn open_sample(&self, ordinal: u64, field: Option<&str>) -> Result<Option<SampleFile>, ReadError> {
        SampleFile::open(&self.single(), &self.pool, ordinal, field)
    }

    /// Reads the sample of a key; `None` if no sample has it. Of several datasets, the first one that has the key is
    /// used.
    ///
    /// # Errors
    /// As [`get`](Self::get), and if the index of keys cannot be read or is damaged.
    pub fn get_by_key(&self, key: &[u8]) -> Result<Option<Sample>, ReadError> {
        self.dataset.find(key)?.map(|ordinal| self.get(ordinal)).transpose()
    }

    /// Reads many samples at once, in the given order: a sample that occurs several times is read once, and samples
    /// that are close to each other are read together.
    ///
    /// # Errors
    /// As [`get`](Self::get); if several samples fail, the error names the one of the lowest ordinal.
    pub fn get_batch(&self, ordinals: &[u64]) -> Result<Batch, ReadError> {
        let len = |read: &Result<Batch, _>| read.as_ref().map_or(0, Batch::payload_bytes);
        self.access.read(&self.dataset, ordinals.len(), len, |access| self.gather(access).batch(ordinals))
    }

    /// Begins an epoch, with a plan and an engine of its own. The first epoch also loads the index. It does not wait
    /// for a large one: once the first batch is ready, another thread loads it, and until then samples are located one
    /// by one. If the index turns out to be damaged, the epoch ends with that error; no byte that fails a checksum is
    /// ever returned.
    ///
    /// # Errors
    /// If the index is damaged; the dataset or the subset is empty; there is no such rank; the state to resume from is
    /// of another epoch; the number of lanes does not suit; the window is smaller than a chunk; or no engine or
    /// thread can be started.
    pub fn epoch(&self, options: &EpochOptions) -> Result<Epoch, ReadError> {
        self.dataset.load_if_small()?;
        self.access.look_again(&self.dataset);
        let access = self.access.now();
        let inputs = EpochInputs {
            dataset: &self.dataset,
            open_files: &access.open_files,
            extents: self.extents()?,
            engines: &access.engines,
            timeout: self.timeout.clone(),
            pool: &self.pool,
            cache: self.cache()?,
            next: &self.next,
        };
        Epoch::new(options, inputs)
    }

    /// The plan of an epoch: its order and this rank's share of it, to be inspected without reading any payload. Reads
    /// only the parts of the index that the order needs.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch), except those of the engine.
    pub fn plan(&self, options: &EpochOptions) -> Result<EpochPlan, ReadError> {
        EpochPlan::of(&self.dataset, self.extents()?, options)
    }

    /// Loads the whole index, unless it is loaded: afterwards no call waits for it or reads parts of it.
    ///
    /// # Errors
    /// If the index is damaged.
    pub fn load(&self) -> Result<(), ReadError> {
        Ok(self.dataset.load()?)
    }

    /// The extents of the datasets, computed once for all epochs. Reads only the chunk lists of the index.
    ///
    /// # Errors
    /// If these parts of the index are damaged.
    pub fn extents(&self) -> Result<Arc<Extents>, ReadError> {
        if let Some(extents) = self.extents.get() {
            return Ok(Arc::clone(extents));
        }
        let extents = Arc::new(extents_of(&self.dataset)?);
        Ok(Arc::clone(self.extents.get_or_init(|| extents)))
    }

    /// The cache of the epochs, if there is one.
    fn cache(&self) -> Result<Option<Arc<Cache>>, ReadError> {
        if self.cache_bytes == 0 || self.access.now().io.mode == IoMode::Mapped {
            return Ok(None);
        }
        let extents = self.extents()?;
        let Some(mut slot) = self.cache.lock() else { return Ok(None) };
        // A forked process does not share the memory of its parent's cache, and starts its own.
        let here = slot.take().filter(|cache| cache.is_home());
        let cache = here.unwrap_or_else(|| Arc::new(Cache::new(self.cache_bytes, extents)));
        Ok(Some(Arc::clone(slot.insert(cache))))
    }

    fn single(&self) -> Single<'_> {
        self.single_by(self.access.now())
    }

    fn single_by<'a>(&'a self, access: &'a Access) -> Single<'a> {
        Single { dataset: &self.dataset, open_files: &access.open_files, pool: &self.pool }
    }

    fn gather<'a>(&'a self, access: &'a Access) -> Gather<'a> {
        Gather {
            dataset: &self.dataset,
            open_files: &access.open_files,
            engines: &access.engines,
            pool: &self.pool,
            timeout: &self.timeout,
        }
    }

    fn refusal(&self) -> Option<String> {
        Some(format!("{}: the file system refuses direct I/O", shown_path(self.access.now().open_files.refused()?)))
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("dataset", &self.dataset)
            .field("io", &self.access.now().io)
            .finish_non_exhaustive()
    }
}
