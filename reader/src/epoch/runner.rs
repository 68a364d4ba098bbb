//! The thread that makes an epoch's batches: it drives the reads, verifies and copies, and hands batches over.
//!
//! ```text
//! plan -> drafts (where it goes) ---------------------------v
//!      -> fetch (what is read: engine, units held) -> check and copy -> handoff -> caller
//! ```
//!
//! Where another epoch is to follow, its units follow those of this one in the fetch, and its batches in the queue: so
//! its first extents are read before this one ends.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_store::Collection;

use super::damaged::Damaged;
use super::drafts::{Drafts, LaidOut};
use super::epoch_plan::EpochPlan;
use super::fetch::{Fetch, Visit};
use super::handoff::Handoff;
use super::planning::Planning;
use super::stats::EpochStats;
use super::units::padding_lane;
use crate::ReadError;
use crate::batch::Batch;
use crate::check::{CheckTimes, Checkers};
use crate::draft::Due;
use crate::engine::{BLOCK_LEN, Filled};
use crate::plan::{Plan, Positions};

/// Stored bytes that one thread verifies and copies before more reads are looked after.
const GROUP_LEN: u64 = 1 << 20;
/// Stored bytes after which it is asked whether the threads keep up.
const REVIEW_LEN: u64 = 64 << 20;

/// What comes through the queue.
pub(super) enum Item {
    /// A batch, and what has been done up to it.
    Batch(Batch, Box<EpochStats>),
    /// The epoch has ended.
    End,
    /// It cannot go on.
    Failed(ReadError),
}

/// Makes the batches of one epoch, or of one after the other.
pub(super) struct Runner {
    pub(super) dataset: Collection,
    pub(super) planning: Planning,
    pub(super) fetch: Fetch,
    pub(super) drafts: Drafts,
    pub(super) handoff: Arc<Handoff<Item>>,
    pub(super) checkers: Checkers,
    pub(super) damage: Damaged,
    pub(super) progress: Progress,
}

/// Ends the queue when it goes.
struct EndGuard(Arc<Handoff<Item>>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What has been done.
#[derive(Default)]
pub(super) struct Progress {
    /// Plans that fetch and drafts know; the first is of the epoch that is being made.
    plans: VecDeque<EpochPlan>,
    planned_batches: u64,
    stats: EpochStats,
    /// What the epochs before took.
    before: EpochStats,
    check_times: CheckTimes,
    /// Time that this thread spent verifying and copying, or waiting for those that help it.
    checking: Duration,
    wait_for_caller: Duration,
    review: Option<Review>,
}

/// The lanes that visit the samples of a batch one after the other, round and round, and in the end the padding's.
struct Lanes {
    lane: u64,
    step: u64,
    lane_count: u64,
    /// Samples that are no padding.
    inside_count: u64,
    padding_lane: u64,
}

impl Lanes {
    fn of(plan: &Plan, positions: &Positions) -> Self {
        let lane_count = plan.lanes().map_or(1, |lanes| lanes.lane_count());
        let inside_count = plan.len().saturating_sub(positions.first).div_ceil(positions.step).min(positions.count);
        Self {
            lane: positions.first % lane_count,
            step: positions.step % lane_count,
            lane_count,
            inside_count,
            padding_lane: padding_lane(plan),
        }
    }
}

impl Iterator for Lanes {
    type Item = u64;

    /// The lane of the next sample.
    fn next(&mut self) -> Option<u64> {
        if self.inside_count == 0 {
            return Some(self.padding_lane);
        }
        self.inside_count -= 1;
        let (lane, next) = (self.lane, self.lane + self.step);
        self.lane = if next < self.lane_count { next } else { next - self.lane_count };
        Some(lane)
    }
}

/// Where the last look at the threads' pace was taken.
struct Review {
    at: Instant,
    stored_bytes: u64,
    /// Time that this thread spent verifying and copying.
    checking: Duration,
}

impl Runner {
    /// Works until the epochs are done, something fails, or nobody wants more.
    pub(super) fn run(mut self, first: EpochPlan) {
        // Also where this panics: the caller would wait for ever.
        let _end = EndGuard(Arc::clone(&self.handoff));
        if let Err(error) = self.make_all(first) {
            self.handoff.put(Item::Failed(error), 0);
        }
    }

    fn make_all(&mut self, first: EpochPlan) -> Result<(), ReadError> {
        self.append(first);
        self.fetch.read_ahead(&mut self.drafts)?;
        while let Some(epoch) = self.progress.plans.front().cloned() {
            self.make_epoch(&epoch)?;
            self.progress.plans.pop_front();
            self.progress.before = self.totals();
            self.handoff.put(Item::End, 0);
            self.handoff.flush();
            if self.handoff.is_stopped() {
                break;
            }
            self.append_next()?;
        }
        Ok(())
    }

    fn make_epoch(&mut self, epoch: &EpochPlan) -> Result<(), ReadError> {
        self.progress.stats = EpochStats { engine: self.fetch.engine_name(), ..EpochStats::default() };
        self.progress.review = None;
        for _ in 0..epoch.share().batch_count() {
            if !self.wait_for_room()? || !self.drafts.begin_next()? {
                break;
            }
            let batch = self.make_batch(epoch.plan())?;
            self.hand_over(batch);
            self.load_index()?;
            self.append_next()?;
            self.review();
        }
        Ok(())
    }

    /// Begins to load the index once there is a batch, which would else have to share the device with it.
    fn load_index(&self) -> Result<(), ReadError> {
        if self.dataset.is_loaded() {
            return Ok(());
        }
        // To look up the samples of the next one takes a while until then.
        self.handoff.flush();
        Ok(self.dataset.load_ahead()?)
    }

    /// Fills the batch that has been begun, group by group.
    fn make_batch(&mut self, plan: &Plan) -> Result<Batch, ReadError> {
        let Some(LaidOut { draft, positions }) = self.drafts.current() else { return Err(self.fetch.stopped()) };
        let (samples, mut lanes) = (Arc::clone(draft.samples()), Lanes::of(plan, positions));
        let mut start = 0;
        let mut visits = Vec::new();
        while start < samples.len() {
            let group = start..start + self.group_len(&samples[start..]);
            start = group.end;
            self.visit(&samples[group.clone()], group.start, &mut lanes, &mut visits)?;
            self.check(&samples, group, &visits)?;
            visits.drain(..).try_for_each(|visit| self.fetch.leave(visit))?;
            self.fetch.service()?;
        }
        let LaidOut { draft, positions } = self.drafts.take_current()?.ok_or_else(|| self.fetch.stopped())?;
        let skipped = self.damage.take_skipped();
        self.progress.stats.skipped_samples += skipped.len() as u64;
        let delivered = (0..).zip(samples.iter()).filter(|(place, _)| !skipped.contains_key(place));
        delivered.for_each(|(_, due)| self.progress.stats.count_sample(&due.location));
        Ok(draft.finish(&self.dataset, positions, plan.len(), skipped))
    }

    /// Samples that are made together.
    fn group_len(&self, samples: &[Due]) -> usize {
        let len_max = GROUP_LEN * self.checkers.count() as u64;
        let mut len = 0;
        let within = |due: &&Due| {
            // A sample that is read by itself takes a block at least.
            len += due.location.stored_len.max(BLOCK_LEN as u64);
            len <= len_max
        };
        samples.iter().take_while(within).count().max(1)
    }

    /// Waits for samples, the first of which is number `start` of the batch.
    fn visit(
        &mut self,
        samples: &[Due],
        start: usize,
        lanes: &mut Lanes,
        visits: &mut Vec<Visit>,
    ) -> Result<(), ReadError> {
        for ((index, due), lane) in (start..).zip(samples).zip(lanes) {
            let visit = self.fetch.visit(lane, &due.location, &mut self.drafts)?;
            if visit.failed {
                self.recover(visit, index, due)?;
            } else if visit.in_place
                && let (Some(filled), Some(current)) = (self.fetch.take_in_place(visit), self.drafts.current())
            {
                current.draft.fill_slot(index, filled);
            } else if let Some(current) = self.drafts.current().filter(|current| current.draft.has_slot(index)) {
                // It was to be read into its slot, but came from the cache, or is on its way there.
                current.draft.copy_to_slot(index, self.fetch.stored(visit, &due.location));
            }
            visits.push(visit);
        }
        Ok(())
    }

    /// Goes on after a read that failed, if that is wanted: without the sample, or with what it reads by itself.
    fn recover(&mut self, visit: Visit, index: usize, due: &Due) -> Result<(), ReadError> {
        if !self.damage.is_skipped() || self.fetch.is_alone(visit, &due.location) {
            let (error, buffer) = self.fetch.take_failure(visit).ok_or_else(|| self.fetch.stopped())?;
            self.damage.note(index, ReadError::unreadable(&self.dataset, due.ordinal, error))?;
            match self.drafts.current().filter(|_| visit.in_place) {
                Some(current) => current.draft.fill_slot(index, Filled::new(buffer, 0..0)),
                None => self.fetch.give(visit, buffer),
            }
            return Ok(());
        }
        match self.fetch.read_alone(due.ordinal, &due.location) {
            Ok(filled) => match self.drafts.current().filter(|current| current.draft.has_slot(index)) {
                Some(current) => current.draft.copy_to_slot(index, filled.bytes()),
                None => self.damage.keep(index, filled),
            },
            Err(error) => self.damage.note(index, error)?,
        }
        Ok(())
    }

    fn check(&mut self, samples: &[Due], group: Range<usize>, visits: &[Visit]) -> Result<(), ReadError> {
        let Some(LaidOut { draft, .. }) = self.drafts.current() else { return Ok(()) };
        let (fetch, damage) = (&self.fetch, &self.damage);
        let mut visits = (group.start..).zip(visits);
        let stored = |due: &Due| match visits.next() {
            Some((index, visit)) if visit.failed => damage.kept(index),
            Some((_, visit)) => fetch.stored(*visit, &due.location),
            None => &[],
        };
        let mut checks = draft.checks(group.clone(), stored);
        let begin = Instant::now();
        let failures = self.checkers.run(&mut checks, &mut self.progress.check_times);
        drop(checks);
        self.progress.checking += begin.elapsed();
        for (index, error) in failures {
            let due = samples[group.start + index];
            let error = ReadError::damaged(&self.dataset, due.ordinal, &due.location, &error);
            self.damage.note(group.start + index, error)?;
        }
        self.damage.forget_kept();
        Ok(())
    }

    fn hand_over(&mut self, batch: Batch) {
        let len = batch.block().len();
        let stats = Box::new(self.stats());
        self.handoff.put(Item::Batch(batch, stats), len);
    }

    /// `false` where nobody wants more. Reads go on meanwhile.
    fn wait_for_room(&mut self) -> Result<bool, ReadError> {
        let begin = Instant::now();
        while !self.handoff.has_room() && !self.handoff.is_stopped() {
            self.handoff.flush();
            if !self.fetch.idle()? {
                self.handoff.wait_for_room();
            }
        }
        self.progress.wait_for_caller += begin.elapsed();
        Ok(!self.handoff.is_stopped())
    }

    /// Once all units of the epochs so far are submitted, goes on with the next, if there is to be one.
    fn append_next(&mut self) -> Result<(), ReadError> {
        if self.progress.plans.len() < 2 && self.fetch.is_exhausted(&self.drafts) && self.handoff.is_followed() {
            // Planning takes a while.
            self.handoff.flush();
            let Some(epoch) = self.planning.next()? else { return Ok(()) };
            self.append(epoch);
            self.fetch.read_ahead(&mut self.drafts)?;
        }
        Ok(())
    }

    fn append(&mut self, epoch: EpochPlan) {
        self.fetch.append(&epoch, self.progress.planned_batches);
        self.drafts.append(&epoch);
        self.progress.planned_batches += epoch.share().batch_count();
        self.progress.plans.push_back(epoch);
    }

    /// What this epoch has done.
    fn stats(&self) -> EpochStats {
        let mut stats = self.totals();
        stats.take_off(&self.progress.before);
        stats
    }

    /// The samples of this epoch, and all that it and those before it took.
    fn totals(&self) -> EpochStats {
        let mut stats = self.progress.stats.clone();
        self.fetch.count_into(&mut stats);
        let CheckTimes { verify, copy } = self.progress.check_times;
        (stats.stages.verify, stats.stages.copy) = (verify, copy);
        stats.stages.prepare += self.drafts.prepare();
        stats.stages.wait_for_caller = self.progress.wait_for_caller;
        stats.check_threads = self.checkers.count();
        stats.remarks = self.fetch.remarks();
        stats
    }

    /// Calls for more threads where verifying and copying is most of what this thread does.
    fn review(&mut self) {
        let stored_bytes = self.progress.stats.stored_bytes;
        let now = Review { at: Instant::now(), stored_bytes, checking: self.progress.checking };
        let Some(last) = &self.progress.review else {
            self.progress.review = Some(now);
            return;
        };
        if stored_bytes - last.stored_bytes < REVIEW_LEN {
            return;
        }
        if (now.checking - last.checking) * 10 > (now.at - last.at) * 7 {
            self.checkers.grow();
        }
        self.progress.review = Some(now);
    }
}
