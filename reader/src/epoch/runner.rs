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

use grainstore_store::Dataset;

use super::drafts::Drafts;
use super::fetch::{Fetch, Visit};
use super::handoff::Handoff;
use super::planning::Planning;
use super::stats::EpochStats;
use super::units::Units;
use crate::ReadError;
use crate::batch::Batch;
use crate::check::{CheckTimes, Checkers, Failure};
use crate::draft::Due;
use crate::engine::BLOCK_LEN;
use crate::plan::Plan;

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
    pub(super) dataset: Dataset,
    pub(super) planning: Planning,
    pub(super) fetch: Fetch,
    pub(super) drafts: Drafts,
    pub(super) handoff: Arc<Handoff<Item>>,
    pub(super) checkers: Checkers,
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
    plans: VecDeque<Plan>,
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

/// The lanes that visit one sample after the other, round and round.
struct Lanes {
    lane: u64,
    lane_count: u64,
}

impl Lanes {
    /// The lane of the next sample.
    fn step(&mut self) -> u64 {
        let lane = self.lane;
        self.lane = if lane + 1 == self.lane_count { 0 } else { lane + 1 };
        lane
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
    pub(super) fn run(mut self, first: Plan) {
        // Also where this panics: the caller would wait for ever.
        let _end = EndGuard(Arc::clone(&self.handoff));
        if let Err(error) = self.make_all(first) {
            self.handoff.put(Item::Failed(error), 0);
        }
    }

    fn make_all(&mut self, first: Plan) -> Result<(), ReadError> {
        self.append(first);
        self.fetch.read_ahead(&mut self.drafts)?;
        while let Some(plan) = self.progress.plans.front().cloned() {
            self.make_epoch(&plan)?;
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

    fn make_epoch(&mut self, plan: &Plan) -> Result<(), ReadError> {
        self.progress.stats = EpochStats { engine: self.fetch.engine_name(), ..EpochStats::default() };
        self.progress.review = None;
        let lane_count = plan.lanes().map_or(1, |lanes| lanes.lane_count());
        let mut position = 0;
        while position < plan.len() && self.wait_for_room()? && self.drafts.begin_next()? {
            let batch = self.make_batch(position, lane_count)?;
            position += batch.len() as u64;
            self.hand_over(batch);
            self.append_next()?;
            self.review();
        }
        Ok(())
    }

    /// Fills the batch that has been begun, group by group.
    fn make_batch(&mut self, first_position: u64, lane_count: u64) -> Result<Batch, ReadError> {
        let samples = self.drafts.current().map(|draft| Arc::clone(draft.samples())).unwrap_or_default();
        let mut start = 0;
        let mut visits = Vec::new();
        while start < samples.len() {
            let group = start..start + self.group_len(&samples[start..]);
            start = group.end;
            let lane = (first_position + group.start as u64) % lane_count;
            self.visit(&samples[group.clone()], group.start, Lanes { lane, lane_count }, &mut visits)?;
            self.check(&samples, group, &visits)?;
            visits.drain(..).for_each(|visit| self.fetch.leave(visit));
            self.fetch.service()?;
        }
        let draft = self.drafts.take_current()?.ok_or_else(|| self.fetch.stopped())?;
        samples.iter().for_each(|due| self.progress.stats.count_sample(&due.location));
        Ok(draft.finish(&self.dataset, first_position))
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
        mut lanes: Lanes,
        visits: &mut Vec<Visit>,
    ) -> Result<(), ReadError> {
        for (index, due) in samples.iter().enumerate() {
            let visit = self.fetch.visit(lanes.step(), (due.ordinal, &due.location), &mut self.drafts)?;
            if visit.in_place
                && let (Some(filled), Some(draft)) = (self.fetch.take_in_place(visit), self.drafts.current())
            {
                draft.fill_slot(start + index, filled);
            }
            visits.push(visit);
        }
        Ok(())
    }

    fn check(&mut self, samples: &[Due], group: Range<usize>, visits: &[Visit]) -> Result<(), ReadError> {
        let Some(draft) = self.drafts.current() else { return Ok(()) };
        let fetch = &self.fetch;
        let mut visits = visits.iter();
        let stored = |due: &Due| visits.next().map_or(&[][..], |visit| fetch.stored(*visit, &due.location));
        let mut checks = draft.checks(group.clone(), stored);
        let begin = Instant::now();
        let checked = self.checkers.run(&mut checks, &mut self.progress.check_times);
        drop(checks);
        self.progress.checking += begin.elapsed();
        checked.map_err(|(index, error): Failure| {
            let due = samples[group.start + index];
            ReadError::damaged(&self.dataset, due.ordinal, &due.location, &error)
        })
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
            let Some(plan) = self.planning.next()? else { return Ok(()) };
            self.append(plan);
            self.fetch.read_ahead(&mut self.drafts)?;
        }
        Ok(())
    }

    fn append(&mut self, plan: Plan) {
        self.fetch.append(Units::of(&plan), self.progress.planned_batches);
        self.drafts.append(&plan);
        self.progress.planned_batches += self.drafts.batch_count(plan.len());
        self.progress.plans.push_back(plan);
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
