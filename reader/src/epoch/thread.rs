//! The thread of an epoch: it is started here, stops when its owner is dropped, and waits here for the next epoch.

use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};

use grainstore_host::{ForkLock, FreeMemory};
use grainstore_store::Collection;

use super::assembler::{Assembler, DECODED_AHEAD_LEN_MAX};
use super::batch_maker::{BatchMaker, Message};
use super::cache::Cache;
use super::channel::{Channel, QueueBounds};
use super::damaged_samples::DamagedSamples;
use super::epoch_plan::EpochPlan;
use super::in_flight::InFlight;
use super::options::EpochOptions;
use super::pipeline::Pipeline;
use super::schedule::ReadSchedule;
use super::segment_reads::{ReadTimes, SegmentReads};
use super::series::EpochSeries;
use crate::ReadError;
use crate::engine::{BufferPool, Engine, IoMode};
use crate::engine_pool::EnginePool;
use crate::open_files::OpenFiles;
use crate::plan::{Extents, LONE_SAMPLE_CHUNKS, Order};
use crate::read_timeout::ReadTimeout;

/// Batches that wait for the caller: at most 64, or 8 MiB of them, but always one, unless it was decoded to more
/// than a small file should be able to take.
const QUEUE: QueueBounds = QueueBounds { count_max: 64, len_max: 8 << 20, decoded_len_max: DECODED_AHEAD_LEN_MAX };
/// Batches that are in memory at a time, where they are large: one that is being made, one that waits, the caller's.
const BATCHES_HELD: u64 = 3;

/// What an epoch reads from, and what it reads with.
pub(crate) struct EpochInputs<'a> {
    pub(crate) dataset: &'a Collection,
    pub(crate) open_files: &'a Arc<OpenFiles>,
    pub(crate) extents: Arc<Extents>,
    pub(crate) engines: &'a EnginePool,
    pub(crate) timeout: ReadTimeout,
    /// Memory of batches, of earlier epochs too.
    pub(crate) pool: &'a Arc<BufferPool>,
    /// Extents that are kept from epoch to epoch, if any are.
    pub(crate) cache: Option<Arc<Cache>>,
    /// Where the thread of the epoch before waits, if there is one.
    pub(crate) next: &'a Arc<NextEpoch>,
}

/// A thread that has continued with the next epoch, until that is requested.
#[derive(Default)]
pub(crate) struct NextEpoch(ForkLock<Option<(EpochOptions, EpochThread)>>);

impl NextEpoch {
    pub(super) fn put(&self, options: EpochOptions, thread: EpochThread) {
        let replaced = self.0.lock().map(|mut waiting| waiting.replace((options, thread)));
        // Stops a thread, so not under the lock.
        drop(replaced);
    }

    /// The thread, if it is for these options and reads these files; else it is stopped.
    pub(super) fn take(&self, options: &EpochOptions, files: &Arc<OpenFiles>) -> Option<EpochThread> {
        let (waiting_for, thread) = self.0.lock()?.take()?;
        // Whether yet another follows makes no difference to this one.
        let waiting_for = EpochOptions { followed: options.followed, ..waiting_for };
        thread.channel.set_followed(options.followed);
        let is_wanted = waiting_for == *options && thread.files.ptr_eq(&Arc::downgrade(files));
        (is_wanted && thread.channel.is_home()).then_some(thread)
    }
}

/// The thread that makes batches, and the channel that they come through. Dropping it stops it.
pub(super) struct EpochThread {
    pub(super) channel: Arc<Channel<Message>>,
    /// The files that it reads; it keeps none of them open once it has ended.
    files: Weak<OpenFiles>,
    handle: Option<JoinHandle<()>>,
}

impl EpochThread {
    pub(super) fn start(
        options: &EpochOptions,
        inputs: EpochInputs<'_>,
        engine: Box<dyn Engine>,
        series: EpochSeries,
        plan: EpochPlan,
    ) -> Result<Self, ReadError> {
        let EpochInputs { dataset, open_files, timeout, pool, cache, .. } = inputs;
        let channel = Arc::new(Channel::new(QUEUE));
        channel.set_followed(series.is_followed());
        let in_place_len_min = in_place_len_min(series.order(), dataset).max(open_files.in_place_len_min());
        let window_len = own_window_len(options.window_len, &plan);
        let memory = FreeMemory::now();
        let ahead_len_max = ahead_len_max(plan.order(), window_len, memory);
        let held_len = if plan.order() == Order::Chunked { window_len } else { 0 };
        let of_own = if open_files.mode() == IoMode::Mapped { 0 } else { held_len.saturating_add(ahead_len_max) };
        let in_batches = BATCHES_HELD.saturating_mul(options.batch_size.get() as u64).min(plan.plan().len());
        let all_batches_len = mean_len(dataset).saturating_mul(in_batches);
        let samples_len = of_own.min(dataset.segment_bytes()).saturating_add(all_batches_len);
        if let Some(warning) = lack_of_memory(samples_len, memory) {
            tracing::warn!("{warning}");
        }
        let before_wait = {
            let channel = Arc::clone(&channel);
            Box::new(move || channel.flush())
        };
        let reads = SegmentReads {
            dataset: dataset.clone(),
            files: Arc::clone(open_files),
            engine,
            timeout: timeout.until(channel.stop_flag()),
            before_wait,
            times: ReadTimes::default(),
        };
        let extents = Arc::clone(plan.plan().extents());
        let kept = options.subset.clone();
        let pipeline = Pipeline::new(
            ReadSchedule::new(dataset.clone(), extents, cache, kept, in_place_len_min),
            Assembler::new(dataset.clone(), Arc::clone(pool), in_place_len_min),
            InFlight::new(reads, held_len.saturating_add(ahead_len_max)),
            ahead_len_max,
        );
        let damage = DamagedSamples::new(options.on_damage);
        let maker = BatchMaker::new(dataset.clone(), series, pipeline, Arc::clone(&channel), damage);
        let handle = Builder::new().name("grain-epoch".into()).spawn(move || maker.run(plan));
        let handle = handle.map_err(|source| ReadError::Thread { source })?;
        Ok(Self { channel, files: Arc::downgrade(open_files), handle: Some(handle) })
    }
}

impl Drop for EpochThread {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        if self.channel.is_home() {
            self.channel.stop();
            // The panic hook has reported a panic, and the channel is closed.
            drop(handle.join());
        } else {
            // A forked process does not have this thread, and its lock may be held forever.
            std::mem::forget(handle);
            std::mem::forget(Arc::clone(&self.channel));
        }
    }
}

/// What to say if samples take more memory than there is. A process that exceeds the limit of its control group is ended
/// without a word.
fn lack_of_memory(held_len: u64, memory: FreeMemory) -> Option<String> {
    let usable = memory.usable().filter(|usable| *usable < held_len)?;
    Some(format!(
        "this epoch holds about {held_len} bytes of samples, and {usable} bytes of memory are free: the system may end \
         the process; a smaller window or smaller batches take less"
    ))
}

/// Bytes of a sample on average, as samples are stored.
fn mean_len(dataset: &Collection) -> u64 {
    dataset.segment_bytes() / dataset.sample_count().max(1)
}

/// Raw samples from this many bytes on are units by themselves.
fn in_place_len_min(order: Order, dataset: &Collection) -> u64 {
    match order {
        Order::Full => 0,
        Order::Chunked | Order::Sequential => dataset.chunk_size().bytes().saturating_mul(LONE_SAMPLE_CHUNKS),
    }
}

/// This rank's part of the window, which is of all ranks' lanes.
fn own_window_len(window_len: u64, plan: &EpochPlan) -> u64 {
    match plan.lanes() {
        Some(lanes) => (window_len / lanes).saturating_mul(plan.share().visited_lane_count()).max(1),
        None => window_len,
    }
}

/// Bytes that may be read ahead of their need: an eighth of the window, which is enough for any device where the window
/// is as large as it should be; up to all of a small window. Where the order holds no window, it is less in little memory.
fn ahead_len_max(order: Order, window_len: u64, memory: FreeMemory) -> u64 {
    const ENOUGH_LEN: u64 = 8 << 20;
    const SINGLE_LEN_MAX: u64 = 64 << 20;
    let len = (window_len / 8).max(window_len.min(ENOUGH_LEN));
    match order {
        Order::Chunked => len,
        // Each extent or sample is visited at once: to read further ahead would only take memory.
        Order::Full | Order::Sequential => {
            let share = memory.usable().map_or(SINGLE_LEN_MAX, |usable| (usable / 16).max(ENOUGH_LEN));
            len.min(SINGLE_LEN_MAX).min(share)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_samples_than_memory_are_warned_of() {
        let memory = |available, limit| FreeMemory { available, limit };
        let said = lack_of_memory(300, memory(Some(1000), Some(299))).unwrap();
        assert!(said.starts_with("this epoch holds about 300 bytes of samples, and 299 bytes of memory are free"));
        assert_eq!(lack_of_memory(300, memory(Some(1000), Some(300))), None);
        assert_eq!(lack_of_memory(300, memory(None, None)), None);
    }

    #[test]
    fn less_is_read_ahead_in_little_memory_where_no_window_needs_it() {
        let memory = |mib: u64| FreeMemory { available: Some(mib << 20), limit: None };
        for (order, mib, ahead_mib) in
            [(Order::Full, 10_000, 32), (Order::Sequential, 320, 20), (Order::Full, 100, 8), (Order::Chunked, 100, 32)]
        {
            assert_eq!(ahead_len_max(order, 256 << 20, memory(mib)), ahead_mib << 20, "{order}, {mib}");
        }
        assert_eq!(ahead_len_max(Order::Full, 1 << 40, FreeMemory::default()), 64 << 20);
    }
}
