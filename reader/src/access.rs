//! How a reader gets at its files: the choice of I/O, the files opened for it, and its engines.
//!
//! `auto` is decided when the reader is made. Data that were on a device then and are read through the page cache are in
//! memory after an epoch, where a map is two to three times as fast. So the question is asked again: before each epoch,
//! and after 1024 single samples, 2048, 4096 and so on, which costs a fraction of a read each time. The change is made
//! once, for reads that begin afterwards, and changes nothing that they return: the files are compared with the dataset
//! before, and if they are others by now, reading goes on from those that are open.
//!
//! Where single samples are read from a device for some time, a thread reads all files meanwhile: [`Filling`].

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use grainstore_host::{ForkLock, FreeMemory};
use grainstore_store::Collection;

use crate::ReadError;
use crate::engine::IoMode;
use crate::engine_choice::EngineChoice;
use crate::engine_pool::{EnginePool, EngineSpec};
use crate::filling::{CallerRead, Filling};
use crate::io::{Io, IoChoice};
use crate::open_files::{OpenFiles, Opening};
use crate::reader::ReaderOptions;
use crate::residency::is_resident;

/// Samples that are read before it is asked for the first time whether the data have come into memory.
const READS_BEFORE_ASKING: u64 = 1024;

/// One way to get at the files.
pub(crate) struct Access {
    pub(crate) io: Io,
    pub(crate) open_files: Arc<OpenFiles>,
    pub(crate) engines: EnginePool,
}

/// The way that was chosen when the reader was made, and the better one that it may change to.
pub(crate) struct ReaderAccess {
    first: Access,
    mapped: OnceLock<Access>,
    /// Held while it changes. A forked process whose parent was changing does not wait for it, and does not change.
    changing: ForkLock<()>,
    /// Whether the files are to be mapped once they are in memory.
    may_change: bool,
    spec: EngineSpec,
    reads: ReadCount,
    filling: Filling,
}

/// Samples read by single calls. On a cache line of its own: threads that read write to it, and read what is beside it.
#[repr(align(64))]
struct ReadCount {
    /// Threads that count at once may lose some.
    count: AtomicU64,
    /// How many of them there are when it is asked again.
    ask_at: AtomicU64,
}

impl ReadCount {
    /// Counts samples. Returns whether it is time to ask.
    fn add(&self, count: usize) -> bool {
        // Loaded and stored apart, since a lost count matters less than threads that contend for it.
        let count = self.count.load(Ordering::Relaxed).saturating_add(count as u64);
        self.count.store(count, Ordering::Relaxed);
        let is_time = count >= self.ask_at.load(Ordering::Relaxed);
        if is_time {
            self.ask_at.store(count.saturating_mul(2), Ordering::Relaxed);
        }
        is_time
    }
}

impl Access {
    fn new(dataset: &Collection, io: Io, opening: Opening, spec: EngineSpec) -> Result<Self, ReadError> {
        debug_assert_eq!(io.mode, opening.mode);
        let open_files = Arc::new(OpenFiles::new(dataset.clone(), opening));
        let engines = EnginePool::new(EngineSpec { mode: io.mode, ..spec })?;
        Ok(Self { io, open_files, engines })
    }
}

impl ReaderAccess {
    pub(crate) fn new(dataset: &Collection, options: &ReaderOptions) -> Result<Self, ReadError> {
        // What should be kept in memory of the reader's own, or nowhere, is not to be mapped, nor what an engine should read.
        let may_map = options.cache_bytes == 0 && !options.dont_cache && options.engine == EngineChoice::Auto;
        let is_resident = || may_map && is_resident(dataset);
        let io = Io::decide(options.io, dataset.segment_bytes(), FreeMemory::now, is_resident);
        let must_map = options.io == IoChoice::Mapped;
        let opening = Opening { mode: io.mode, dont_cache: options.dont_cache, must_map };
        let threads = NonZeroUsize::new(options.threads).unwrap_or(NonZeroUsize::MIN);
        let spec = EngineSpec { mode: io.mode, choice: options.engine, threads, queue_len: options.queue_len };
        let may_change = options.io == IoChoice::Auto && io.mode == IoMode::Buffered && may_map;
        Ok(Self {
            first: Access::new(dataset, io, opening, spec)?,
            mapped: OnceLock::new(),
            changing: ForkLock::default(),
            may_change,
            spec,
            reads: ReadCount { count: AtomicU64::new(0), ask_at: AtomicU64::new(READS_BEFORE_ASKING) },
            filling: Filling::new(),
        })
    }

    /// How files are read now.
    pub(crate) fn now(&self) -> &Access {
        self.mapped.get().unwrap_or(&self.first)
    }

    /// Passes `read` how files are read now, for `count` samples that are asked for one by one, or in one call; `len` tells
    /// how many bytes were read.
    #[inline]
    pub(crate) fn read<'a, T>(
        &'a self,
        dataset: &Collection,
        count: usize,
        len: impl FnOnce(&T) -> u64,
        read: impl FnOnce(&'a Access) -> T,
    ) -> T {
        if !self.may_change || self.mapped.get().is_some() {
            return read(self.now());
        }
        if self.reads.add(count) || self.filling.take_filled() {
            self.look_again(dataset);
        }
        let begun = Instant::now();
        let result = read(self.now());
        let time = begun.elapsed();
        self.filling.count_wait(dataset, &CallerRead { begun, samples: count, len: len(&result), time });
        result
    }

    /// Changes to mapped files if all data have come into memory since the reader was made.
    #[cold]
    pub(crate) fn look_again(&self, dataset: &Collection) {
        if !self.may_change || self.mapped.get().is_some() {
            return;
        }
        let Some(_changing) = self.changing.lock() else { return };
        if self.mapped.get().is_some() || !is_resident(dataset) {
            return;
        }
        let io = Io { mode: IoMode::Mapped, why: "the segments have come into memory, on a local file system".into() };
        let opening = Opening { mode: io.mode, dont_cache: false, must_map: false };
        // Without memory or descriptors for it, reads go on as they do.
        let Ok(mapped) = Access::new(dataset, io, opening, self.spec) else { return };
        if mapped.open_files.open_ahead().is_err() {
            return;
        }
        tracing::debug!(io = %mapped.io, "reading changes");
        if self.mapped.set(mapped).is_ok() {
            self.filling.end();
            self.first.engines.drop_idle();
        }
    }
}
