//! Brings files into the page cache while single samples are read from a device.
//!
//! Whoever reads many single samples waits for the device each time. Read from end to end, the same files would be in
//! memory after a fraction of that, but nobody knows how many reads are to come. So a thread reads the files, and takes
//! no more time for it than callers have waited by then, not counting what they waited because of it. However many reads
//! there are, all of them together take at most about twice the time of the better choice in hindsight: A. Karlin et al.,
//! "Competitive Snoopy Caching", Algorithmica 3, 1988.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, Thread, park};
use std::time::{Duration, Instant};

use grainstore_format::memory::zeroed;
use grainstore_format::to_usize;
use grainstore_host::{ForkLock, FreeMemory};
use grainstore_store::Collection;

use crate::engine::OpenFile;
use crate::residency::local_file;

/// Callers that have waited for less than this are few, or their reads come from memory.
const WAITED_MIN: Duration = Duration::from_millis(50);
/// Bytes that are read at a time: fewer are slower on many devices, and a caller's read may have to wait for all of them.
const PIECE_LEN: usize = 2 << 20;
/// After so many pieces it is asked whether there still is memory for all.
const PIECES_PER_LOOK: u64 = 32;
/// A time that callers never have waited.
const NEVER: u64 = u64::MAX;

/// A thread that fills the page cache, once callers have waited for reads.
pub(crate) struct Filling {
    progress: Arc<Progress>,
    /// The thread, if this process has started it.
    thread: ForkLock<Option<Thread>>,
}

struct Progress {
    /// How long callers have waited, in nanoseconds, and for how many samples.
    waited: AtomicU64,
    samples: AtomicU64,
    /// How long a sample took on average before the thread was started: a longer wait is counted as this.
    sample_time_max: AtomicU64,
    /// How long they must have waited for the thread to go on, or to be started; [`NEVER`] while it runs and after.
    wake_at: AtomicU64,
    has_filled: AtomicBool,
    is_stopped: AtomicBool,
}

impl Filling {
    /// Nothing is filled yet.
    pub(crate) fn new() -> Self {
        let progress = Progress {
            waited: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            sample_time_max: AtomicU64::new(NEVER),
            wake_at: AtomicU64::new(nanos(WAITED_MIN)),
            has_filled: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        };
        Self { progress: Arc::new(progress), thread: ForkLock::default() }
    }

    /// Counts the time of a read of some samples of `dataset`, and gives the thread as much.
    pub(crate) fn waited(&self, dataset: &Collection, samples: usize, time: Duration) {
        let Progress { waited, samples: all_samples, sample_time_max, wake_at, .. } = &*self.progress;
        let samples = samples as u64;
        let time = nanos(time).min(sample_time_max.load(Ordering::Relaxed).saturating_mul(samples));
        all_samples.fetch_add(samples, Ordering::Relaxed);
        let waited = waited.fetch_add(time, Ordering::Relaxed).saturating_add(time);
        if waited >= wake_at.load(Ordering::Acquire) {
            self.wake(dataset);
        }
    }

    /// Whether all files have just been read; once.
    pub(crate) fn has_just_filled(&self) -> bool {
        self.progress.has_filled.load(Ordering::Relaxed) && self.progress.has_filled.swap(false, Ordering::AcqRel)
    }

    /// Starts the thread, or lets it go on.
    #[cold]
    fn wake(&self, dataset: &Collection) {
        let mut thread = self.thread.lock_or_renew();
        self.progress.wake_at.store(NEVER, Ordering::Release);
        if let Some(thread) = &*thread {
            return thread.unpark();
        }
        let (dataset, progress) = (dataset.clone(), Arc::clone(&self.progress));
        let average = progress.waited.load(Ordering::Relaxed) / progress.samples.load(Ordering::Relaxed).max(1);
        progress.sample_time_max.store(average, Ordering::Relaxed);
        let started = Builder::new().name("grain-fill".into()).spawn(move || {
            tracing::debug!("files of samples are read into the page cache");
            let has_filled = fill(&dataset, &progress);
            tracing::debug!(has_filled, "the page cache is not filled any more");
            progress.has_filled.store(has_filled, Ordering::Release);
        });
        // Without a thread, nothing is filled.
        *thread = started.ok().map(|started| started.thread().clone());
    }
}

impl Drop for Filling {
    /// The thread ends after the piece that it reads: a device may take long for it.
    fn drop(&mut self) {
        self.progress.is_stopped.store(true, Ordering::Release);
        if let Some(thread) = &*self.thread.lock_or_renew() {
            thread.unpark();
        }
    }
}

impl Progress {
    /// Waits until callers have waited for as long as was `spent`. Returns whether to go on.
    fn may_spend(&self, spent: Duration) -> bool {
        loop {
            if self.is_stopped.load(Ordering::Acquire) {
                return false;
            }
            if self.waited.load(Ordering::Relaxed) >= nanos(spent) {
                self.wake_at.store(NEVER, Ordering::Release);
                return true;
            }
            self.wake_at.store(nanos(spent), Ordering::Release);
            // What was waited meanwhile was compared with the time before.
            if self.waited.load(Ordering::Relaxed) < nanos(spent) {
                park();
            }
        }
    }
}

/// Reads all files from end to end, except what is in the page cache. Returns whether all of them are there now.
fn fill(dataset: &Collection, progress: &Progress) -> bool {
    let Ok(mut piece) = zeroed(PIECE_LEN as u64) else { return false };
    let (mut spent, mut pieces, mut left) = (Duration::ZERO, 0, dataset.segment_bytes());
    for segment in 0..dataset.segment_count() {
        let Some(file) = local_file(dataset, segment) else { return false };
        for offset in (0..file.file_len()).step_by(PIECE_LEN) {
            let has_room = pieces % PIECES_PER_LOOK != 0 || has_room(left);
            if !has_room || !progress.may_spend(spent) {
                return false;
            }
            let begun = Instant::now();
            let len = PIECE_LEN.min(to_usize(file.file_len() - offset));
            if !is_cached(&file, offset + len as u64 - 1) && !read_piece(&file, &mut piece[..len], offset) {
                return false;
            }
            spent += begun.elapsed();
            left = left.saturating_sub(len as u64);
            pieces += 1;
        }
    }
    true
}

/// Whether so many bytes still fit in half of the free memory.
fn has_room(len: u64) -> bool {
    FreeMemory::now().usable().is_some_and(|usable| len <= usable / 2)
}

fn is_cached(file: &OpenFile, offset: u64) -> bool {
    file.read_cached_at(&mut [0], offset).is_ok_and(|read| read == Some(1))
}

/// Whether a piece of a file could be read. Why it could not, the call that needs its bytes will say.
fn read_piece(file: &OpenFile, mut piece: &mut [u8], mut offset: u64) -> bool {
    while !piece.is_empty() {
        match file.read_at(piece, offset) {
            Ok(0) => return false,
            Ok(len) => (piece, offset) = (&mut piece[len..], offset + len as u64),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER - 1)
}
