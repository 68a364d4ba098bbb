//! Brings files into the page cache while samples are read from a device, one by one or in batches.
//!
//! Each of many such reads waits for the device. Read from end to end, the same files would be in memory after a fraction
//! of that time, but nobody knows how many reads are to come. So a thread reads the files, and takes no more time for it
//! than callers have waited before, not counting waits while it reads. So all reads together take at most about
//! twice as long as the better of two choices in hindsight, to read each sample or to read all files first: A. Karlin et
//! al., "Competitive Snoopy Caching", Algorithmica 3, 1988.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use grainstore_format::memory::zeroed;
use grainstore_format::to_usize;
use grainstore_host::{ForkLock, FreeMemory};
use grainstore_store::Collection;

use crate::engine::OpenFile;
use crate::residency::{Pages, local_file};

/// The thread is started when callers have waited for this long.
const WAITED_MIN: Duration = Duration::from_millis(50);
/// A read comes from memory, or from a device that is nearly as fast, if it takes no longer than `FAST`, `FAST_SAMPLE` for
/// each sample and a nanosecond for each two bytes together.
const FAST: Duration = Duration::from_micros(10);
const FAST_SAMPLE: Duration = Duration::from_micros(3);
const FAST_BYTES_PER_NS: u64 = 2;
/// Bytes that are read at a time: fewer are slower on many devices, and a caller's read may have to wait for all of them.
const PIECE_LEN: usize = 2 << 20;
/// How often the thread checks whether memory is still free.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A thread that fills the page cache, once callers have waited for reads.
pub(crate) struct Filling {
    /// A forked process, which does not have the thread, starts with a new one.
    filler: ForkLock<Arc<Filler>>,
    /// Whether all files have been read, which nobody has asked for yet.
    is_new: Arc<AtomicBool>,
}

/// A read of a caller's: how many samples, of how many bytes, when it began and how long it took.
pub(crate) struct CallerRead {
    pub(crate) begun: Instant,
    pub(crate) samples: usize,
    pub(crate) len: u64,
    pub(crate) time: Duration,
}

/// What callers and the thread tell each other.
#[derive(Default)]
struct Filler {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How long callers have waited while the thread did not read.
    waited: Duration,
    /// How long the thread has read, and until when.
    read: Duration,
    read_until: Option<Instant>,
    phase: Phase,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    NotStarted,
    Reads,
    Waits,
    /// The thread has ended, or is to end.
    Ended,
}

impl Filling {
    /// Nothing is filled yet.
    pub(crate) fn new() -> Self {
        Self { filler: ForkLock::default(), is_new: Arc::default() }
    }

    /// Counts the time of a read of `dataset`, unless it came from memory.
    pub(crate) fn count_wait(&self, dataset: &Collection, read: &CallerRead) {
        if read.is_slow() {
            self.count_slow(dataset, read);
        }
    }

    /// The thread ends after the piece that it reads, and nobody waits for it: a device may take long.
    pub(crate) fn end(&self) {
        let filler = Arc::clone(&*self.filler.lock_or_renew());
        filler.end();
    }

    fn count_slow(&self, dataset: &Collection, read: &CallerRead) {
        let filler = Arc::clone(&*self.filler.lock_or_renew());
        if filler.count_wait(read.begun, read.time) {
            self.start(dataset.clone(), filler);
        }
    }

    fn start(&self, dataset: Collection, filler: Arc<Filler>) {
        let is_new = Arc::clone(&self.is_new);
        // Without a thread, nothing is filled.
        let _ = Builder::new().name("grain-fill".into()).spawn(move || {
            tracing::debug!("files of samples are read into the page cache");
            let is_filled = filler.fill(&dataset);
            tracing::debug!(is_filled, "the page cache is not filled any more");
            filler.end();
            is_new.store(is_filled, Ordering::Release);
        });
    }

    /// Whether all files are in the page cache, the first time that it is asked after that.
    pub(crate) fn take_filled(&self) -> bool {
        self.is_new.load(Ordering::Relaxed) && self.is_new.swap(false, Ordering::AcqRel)
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.end();
    }
}

impl CallerRead {
    /// Whether it waited for a device.
    fn is_slow(&self) -> bool {
        let samples = FAST_SAMPLE.saturating_mul(u32::try_from(self.samples).unwrap_or(u32::MAX));
        self.time > FAST + samples + Duration::from_nanos(self.len / FAST_BYTES_PER_NS)
    }
}

impl Filler {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the time of a read, and has a thread that waits continue. Returns whether to start the thread.
    fn count_wait(&self, begun: Instant, time: Duration) -> bool {
        let mut state = self.lock();
        match state.phase {
            // While the thread reads, it is the reason of waits.
            Phase::Reads | Phase::Ended => return false,
            Phase::Waits if state.read_until.is_some_and(|until| begun < until) => return false,
            Phase::NotStarted | Phase::Waits => state.waited += time,
        }
        let (is_enough, is_started) = match state.phase {
            Phase::NotStarted => (state.waited >= WAITED_MIN, false),
            _ => (state.waited > state.read, true),
        };
        if is_enough {
            state.phase = Phase::Reads;
            self.changed.notify_one();
        }
        is_enough && !is_started
    }

    fn end(&self) {
        self.lock().phase = Phase::Ended;
        self.changed.notify_one();
    }

    /// Reads all files from end to end. Returns whether it could.
    fn fill(&self, dataset: &Collection) -> bool {
        let Ok(mut piece) = zeroed(PIECE_LEN as u64) else { return false };
        let mut checked: Option<Instant> = None;
        for segment in 0..dataset.segment_count() {
            let begun = Instant::now();
            let Some((file, pages)) = local_file(dataset, segment) else { return false };
            if !self.spend(begun.elapsed()) {
                return false;
            }
            let file_len = if pages == Pages::Memory { 0 } else { file.file_len() };
            for offset in (0..file_len).step_by(PIECE_LEN) {
                let begun = Instant::now();
                if checked.is_none_or(|checked| begun - checked > CHECK_INTERVAL) {
                    if !fits_in_memory(dataset) {
                        return false;
                    }
                    checked = Some(begun);
                }
                let len = PIECE_LEN.min(to_usize(file_len - offset));
                if !read_piece(&file, &mut piece[..len], offset) || !self.spend(begun.elapsed()) {
                    return false;
                }
            }
        }
        true
    }

    /// Counts the time of a read, and waits until callers have waited for as long. Returns whether to read more.
    fn spend(&self, time: Duration) -> bool {
        let mut state = self.lock();
        state.read += time;
        if state.phase == Phase::Reads && state.waited <= state.read {
            state.phase = Phase::Waits;
            state.read_until = Some(Instant::now());
        }
        while state.phase == Phase::Waits {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.phase == Phase::Reads
    }
}

/// Whether all files fit in half of the free memory, which counts what they take of it already as free.
fn fits_in_memory(dataset: &Collection) -> bool {
    FreeMemory::now().usable().is_some_and(|usable| dataset.segment_bytes() <= usable / 2)
}

/// Whether a piece of a file could be read. Why it could not, the call that needs its bytes reports.
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use std::thread;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Runs `meanwhile` while the thread waits after a read that took `time`; whether the thread then reads more.
    fn reads_more(filler: &Filler, time: Duration, meanwhile: impl FnOnce()) -> bool {
        thread::scope(|scope| {
            let spends = scope.spawn(|| filler.spend(time));
            while filler.lock().phase != Phase::Waits {
                thread::yield_now();
            }
            meanwhile();
            spends.join().unwrap()
        })
    }

    #[test]
    fn the_thread_reads_for_as_long_as_callers_have_waited() {
        let filler = Filler::default();
        let count = |begun, millis| filler.count_wait(begun, millis * MS);
        let at_first = Instant::now();
        assert!(!count(at_first, 49));
        assert!(count(at_first, 1), "50 ms start it");
        assert!(!count(Instant::now(), 1000), "a wait while it reads is not counted");
        assert!(filler.spend(49 * MS));
        let more = reads_more(&filler, 3 * MS, || {
            assert!(!count(at_first, 1000));
            assert!(filler.lock().phase == Phase::Waits, "nor one that began while it read");
            assert!(!count(Instant::now(), 2));
            assert!(filler.lock().phase == Phase::Waits, "it has read for as long");
            assert!(!count(Instant::now(), 1), "it is started once");
        });
        assert!(more);
    }

    #[test]
    fn reads_from_memory_are_no_waits() {
        let begun = Instant::now();
        let is_slow =
            |samples, len, micros| CallerRead { begun, samples, len, time: Duration::from_micros(micros) }.is_slow();
        // A sample of 3 KB and one of 110 KB, warm and cold; a batch of 512 B, warm, half and all of it cold.
        assert_eq!([is_slow(1, 3073, 2), is_slow(1, 3073, 60)], [false, true]);
        assert_eq!([is_slow(1, 110_000, 30), is_slow(1, 110_000, 105)], [false, true]);
        assert_eq!([250, 1500, 3000].map(|micros| is_slow(256, 256 * 512, micros)), [false, true, true]);
    }

    #[test]
    fn a_thread_that_waits_ends_with_its_reader() {
        let filler = Filler::default();
        assert!(filler.count_wait(Instant::now(), 60 * MS));
        assert!(!reads_more(&filler, 60 * MS, || filler.end()));
        assert!(!filler.count_wait(Instant::now(), 60 * MS), "it is not started again");
    }
}
