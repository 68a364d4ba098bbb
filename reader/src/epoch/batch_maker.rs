//! The thread that makes an epoch's batches: it drives the reads, verifies and copies, and sends batches.
//!
//! If another epoch follows, its units follow those of this one in the schedule, and its batches in the
//! channel: so its first extents are read before this one ends.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_store::Collection;

use super::channel::{Channel, ItemLen};
use super::damaged_samples::DamagedSamples;
use super::epoch_plan::EpochPlan;
use super::in_flight::Arrived;
use super::pipeline::Pipeline;
use super::series::EpochSeries;
use super::stats::EpochStats;
use super::unit_number::UnitNumber;
use crate::ReadError;
use crate::batch::Batch;
use crate::batch_builder::{EpochPlaces, LocatedSample, judge};
use crate::check::{CheckTimes, Checkers};
use crate::engine::{BLOCK_LEN, Filled};

/// Stored bytes that one thread verifies and copies before completed reads are taken and more are submitted.
const GROUP_LEN: u64 = 1 << 20;
/// Stored bytes after which it is checked whether the threads keep up.
const PACE_LEN: u64 = 64 << 20;

/// What comes through the channel.
pub(super) enum Message {
    /// A batch, and what has been done up to it.
    Batch(Batch, Box<EpochStats>),
    /// The epoch has ended.
    End,
    /// It cannot continue.
    Failed(ReadError),
}

/// Makes the batches of one epoch, or of several, one after the other.
pub(super) struct BatchMaker {
    dataset: Collection,
    series: EpochSeries,
    pipeline: Pipeline,
    channel: Arc<Channel<Message>>,
    checkers: Checkers,
    damage: DamagedSamples,
    /// Plans that the pipeline has; the first is of the epoch that is being made.
    plans: VecDeque<EpochPlan>,
    done: WorkDone,
}

/// What has been done.
#[derive(Default)]
struct WorkDone {
    /// Of this epoch.
    stats: EpochStats,
    /// What the epochs before took.
    before: EpochStats,
    check_times: CheckTimes,
    /// Time that this thread spent verifying and copying, or waiting for those that help it.
    checking: Duration,
    wait_for_caller: Duration,
    pace: Option<PaceMark>,
}

/// When the threads' pace was checked last.
struct PaceMark {
    at: Instant,
    stored_bytes: u64,
    /// Time that this thread spent verifying and copying.
    checking: Duration,
}

/// Closes the channel when it is dropped.
struct ChannelGuard(Arc<Channel<Message>>);

impl Drop for ChannelGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl BatchMaker {
    pub(super) fn new(
        dataset: Collection,
        series: EpochSeries,
        pipeline: Pipeline,
        channel: Arc<Channel<Message>>,
        damage: DamagedSamples,
    ) -> Self {
        let checkers = Checkers::new();
        let plans = VecDeque::new();
        Self { dataset, series, pipeline, channel, checkers, damage, plans, done: WorkDone::default() }
    }

    /// Works until the epochs are done, something fails, or the caller wants no more.
    pub(super) fn run(mut self, first: EpochPlan) {
        // Closes the channel even if this panics: otherwise the caller would wait forever.
        let _guard = ChannelGuard(Arc::clone(&self.channel));
        if let Err(error) = self.make_all(first) {
            self.channel.put(Message::Failed(error), ItemLen::default());
        }
    }

    fn make_all(&mut self, first: EpochPlan) -> Result<(), ReadError> {
        self.append(first)?;
        while let Some(epoch) = self.plans.front().cloned() {
            self.make_epoch(&epoch)?;
            self.plans.pop_front();
            self.done.before = self.totals();
            self.channel.put(Message::End, ItemLen::default());
            self.channel.flush();
            if self.channel.is_stopped() {
                break;
            }
            self.append_next()?;
        }
        Ok(())
    }

    fn make_epoch(&mut self, epoch: &EpochPlan) -> Result<(), ReadError> {
        self.done.stats = EpochStats::default();
        self.done.pace = None;
        for _ in 0..epoch.share().batch_count() {
            if !self.wait_for_room()? || !self.pipeline.begin_batch()? {
                break;
            }
            let (batch, decoded_len) = self.make_batch(epoch)?;
            self.send(batch, decoded_len);
            self.load_index()?;
            self.append_next()?;
            self.check_pace();
        }
        Ok(())
    }

    /// Begins to load the index once there is a batch. Before, it would slow the first batch down.
    fn load_index(&self) -> Result<(), ReadError> {
        if self.dataset.is_loaded() {
            return Ok(());
        }
        // Until then, locating the samples of the next batch takes long.
        self.channel.flush();
        Ok(self.dataset.load_ahead()?)
    }

    /// Fills the batch that has been begun, group by group. Returns it, and how many bytes of it were decoded.
    fn make_batch(&mut self, epoch: &EpochPlan) -> Result<(Batch, u64), ReadError> {
        let batch = self.pipeline.batch()?;
        let samples = Arc::clone(batch.builder.samples());
        let units = Arc::clone(&batch.units);
        let mut start = 0;
        let mut visited = Vec::new();
        while start < samples.len() {
            let group = start..start + self.group_len(&samples[start..]);
            start = group.end;
            self.wait_for_samples(group.clone(), &samples, &units, &mut visited)?;
            self.check(group, &visited)?;
            for arrived in visited.drain(..) {
                self.pipeline.finish_sample(arrived)?;
            }
            self.pipeline.in_flight.poll()?;
        }
        let batch = self.pipeline.assembler.take_current()?;
        let skipped = self.damage.take_skipped();
        self.done.stats.skipped_samples += skipped.len() as u64;
        for (index, sample) in samples.iter().enumerate() {
            if !skipped.contains_key(&index) {
                self.done.stats.count_sample(&sample.location);
            }
        }
        let decoded_len = batch.builder.decoded_len();
        let places = EpochPlaces { positions: batch.positions, epoch_len: epoch.plan().len(), repeats: batch.repeats };
        Ok((batch.builder.finish(&self.dataset, places, skipped), decoded_len))
    }

    /// Samples that are verified and copied together.
    fn group_len(&self, samples: &[LocatedSample]) -> usize {
        let len_max = GROUP_LEN * self.checkers.count() as u64;
        let mut len = 0;
        let within = |sample: &&LocatedSample| {
            // A sample that is read by itself takes a block at least.
            len += sample.location.stored_len.max(BLOCK_LEN as u64);
            len <= len_max
        };
        samples.iter().take_while(within).count().max(1)
    }

    /// Waits for the samples of a group. Appends to `visited` where the bytes of each of them are.
    fn wait_for_samples(
        &mut self,
        group: Range<usize>,
        samples: &[LocatedSample],
        units: &[UnitNumber],
        visited: &mut Vec<Arrived>,
    ) -> Result<(), ReadError> {
        for index in group {
            let sample = &samples[index];
            let arrived = self.pipeline.wait_for_sample(units[index], &sample.location)?;
            if arrived.failed {
                self.recover(arrived, index, sample)?;
            } else if arrived.in_place {
                let filled = self.pipeline.in_flight.take_slot(arrived)?;
                self.pipeline.batch()?.builder.fill_slot(index, filled);
            } else {
                let Pipeline { assembler, in_flight, .. } = &mut self.pipeline;
                if let Some(batch) = assembler.current()
                    && batch.builder.has_slot(index)
                {
                    // It could be read into its slot, but was read with others, or is in the cache.
                    batch.builder.copy_to_slot(index, in_flight.stored(arrived, &sample.location));
                }
            }
            visited.push(arrived);
        }
        Ok(())
    }

    /// Continues after a failed read if the epoch skips damage: without the sample, or with its bytes read alone.
    fn recover(&mut self, arrived: Arrived, index: usize, sample: &LocatedSample) -> Result<(), ReadError> {
        let Pipeline { assembler, in_flight, .. } = &mut self.pipeline;
        let Some(batch) = assembler.current() else { return Err(ReadError::bug("no batch is under construction")) };
        if !self.damage.is_skipped() || in_flight.is_alone(arrived, &sample.location) {
            let (error, buffer) = in_flight.take_failure(arrived)?;
            self.damage.note(index, ReadError::unreadable(&self.dataset, sample.ordinal, error))?;
            if arrived.in_place {
                batch.builder.fill_slot(index, Filled::new(buffer, 0..0));
            } else {
                in_flight.give(arrived, buffer);
            }
            return Ok(());
        }
        match in_flight.read_alone(sample.ordinal, &sample.location) {
            Ok(filled) if batch.builder.has_slot(index) => batch.builder.copy_to_slot(index, filled.bytes()),
            Ok(filled) => self.damage.keep(index, filled),
            Err(error) => self.damage.note(index, error)?,
        }
        Ok(())
    }

    /// Verifies samples that have arrived, and copies or decodes them into the batch.
    fn check(&mut self, group: Range<usize>, visited: &[Arrived]) -> Result<(), ReadError> {
        let Pipeline { assembler, in_flight, .. } = &mut self.pipeline;
        let Some(batch) = assembler.current() else { return Err(ReadError::bug("no batch is under construction")) };
        let damage = &self.damage;
        let start = group.start;
        let mut checks = batch.builder.checks(group, |index, sample| {
            let arrived = visited[index - start];
            if arrived.failed { damage.kept(index) } else { in_flight.stored(arrived, &sample.location) }
        });
        let begin = Instant::now();
        let failures = self.checkers.run(&mut checks, &mut self.done.check_times);
        drop(checks);
        self.done.checking += begin.elapsed();
        for (place, error) in failures {
            let index = start + place;
            if let Err(error) = judge(&mut batch.builder, index, &error, (&self.dataset, in_flight.files())) {
                self.damage.note(index, error)?;
            }
        }
        self.damage.forget_kept();
        Ok(())
    }

    fn send(&mut self, batch: Batch, decoded: u64) {
        let len = ItemLen { memory: batch.block().len(), decoded };
        let stats = Box::new(self.stats());
        self.channel.put(Message::Batch(batch, stats), len);
    }

    /// Waits for room in the channel, while reads continue; `false` if the caller wants no more.
    fn wait_for_room(&mut self) -> Result<bool, ReadError> {
        let begin = Instant::now();
        while !self.channel.has_room() && !self.channel.is_stopped() {
            self.channel.flush();
            if !self.pipeline.in_flight.idle()? {
                self.channel.wait_for_room();
            }
        }
        self.done.wait_for_caller += begin.elapsed();
        Ok(!self.channel.is_stopped())
    }

    /// Once all units of the epochs so far are submitted, continues with the next epoch, if one was requested.
    fn append_next(&mut self) -> Result<(), ReadError> {
        if self.plans.len() < 2 && self.pipeline.schedule.is_exhausted() && self.channel.is_followed() {
            // Planning takes long: the caller gets what is ready.
            self.channel.flush();
            if let Some(epoch) = self.series.next()? {
                self.append(epoch)?;
            }
        }
        Ok(())
    }

    fn append(&mut self, epoch: EpochPlan) -> Result<(), ReadError> {
        let appended = self.pipeline.append(&epoch);
        self.plans.push_back(epoch);
        appended
    }

    /// What this epoch has done.
    fn stats(&self) -> EpochStats {
        let mut stats = self.totals();
        stats.subtract(&self.done.before);
        stats
    }

    /// The samples of this epoch, and all that it and those before it took.
    fn totals(&self) -> EpochStats {
        let mut stats = self.done.stats.clone();
        self.pipeline.count_into(&mut stats);
        let CheckTimes { verify, copy } = self.done.check_times;
        stats.stages.verify = verify;
        stats.stages.copy = copy;
        stats.stages.wait_for_caller = self.done.wait_for_caller;
        stats.check_threads = self.checkers.count();
        stats
    }

    /// Starts more threads if this thread spends most of its time on verifying and copying.
    fn check_pace(&mut self) {
        let stored_bytes = self.done.stats.stored_bytes;
        let now = PaceMark { at: Instant::now(), stored_bytes, checking: self.done.checking };
        let Some(last) = &self.done.pace else {
            self.done.pace = Some(now);
            return;
        };
        if stored_bytes - last.stored_bytes < PACE_LEN {
            return;
        }
        if (now.checking - last.checking) * 10 > (now.at - last.at) * 7 {
            self.checkers.grow();
        }
        self.done.pace = Some(now);
    }
}
