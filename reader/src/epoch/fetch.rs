//! Reads the units of an epoch ahead of their need, within a bound of memory.
//!
//! A unit is *ahead* from its submission to its first visit, and *begun* from then to its last; then its buffers are
//! let go. Units are submitted in the order of first need as long as those ahead fit the budget, or there are none.
//! So memory is what the lanes are visiting (the window; a sample that is a unit of its own is visited and gone),
//! and the budget, or one unit if that is larger. It cannot get stuck: where the unit that is needed next has not
//! been submitted, it is the next to be, since all others submitted are needed earlier.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_format::to_usize;
use grainstore_store::{Collection, Location};

use super::arena::Arena;
use super::cache::{Arrival, Cache};
use super::drafts::Drafts;
use super::epoch_plan::EpochPlan;
use super::lane::Lane;
use super::planned::Planner;
use super::stats::EpochStats;
use super::unit::{Part, State, Unit};
use crate::ReadError;
use crate::engine::{self, Buffer, Completion, Engine, EngineError, Failed, Filled, Wait};
use crate::open_files::OpenFiles;
use crate::patience::Patience;
use crate::run::Run;

mod submit;

/// The token of a read that is no unit's: there are never so many.
const ALONE: u64 = u64::MAX;

/// Fetches units and lends the stored bytes of their samples.
pub(super) struct Fetch {
    dataset: Collection,
    sources: Arc<OpenFiles>,
    engine: Box<dyn Engine>,
    cache: Option<Arc<Cache>>,
    planner: Planner,
    /// Submitted units by number; the number of one that is done serves again.
    units: Vec<Option<Unit>>,
    free_numbers: Vec<u32>,
    lanes: Vec<Lane>,
    ahead: Ahead,
    /// Whether the index is known to be in memory.
    has_index: bool,
    arena: Arena,
    held_len: u64,
    held_len_max: u64,
    /// What the read of a sample by itself came to.
    alone: Option<Result<Filled, Failed>>,
    /// Samples of units whose bytes were in the cache.
    cached_count: u64,
    completions: Vec<Completion>,
    patience: Patience,
    /// Called before it waits for a read that is needed.
    before_wait: Box<dyn Fn() + Send>,
    times: FetchTimes,
}

/// Time spent so far.
#[derive(Clone, Copy, Debug, Default)]
struct FetchTimes {
    prepare: Duration,
    post: Duration,
    wait: Duration,
}

/// Units that are submitted and not yet begun.
struct Ahead {
    count: u64,
    len: u64,
    len_max: u64,
}

/// A sample whose bytes are there, or will never be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    unit: u32,
    part: u32,
    /// Whether they are in its batch.
    pub(super) in_place: bool,
    /// Whether they are not there: the read failed.
    pub(super) failed: bool,
}

impl Fetch {
    /// Fetches with at most `ahead_len_max` bytes ahead of their need. Nothing is read yet.
    pub(super) fn new(
        dataset: Collection,
        sources: Arc<OpenFiles>,
        engine: Box<dyn Engine>,
        bounds: FetchBounds,
        cache: Option<Arc<Cache>>,
        patience: Patience,
        before_wait: Box<dyn Fn() + Send>,
    ) -> Self {
        let FetchBounds { ahead_len_max, window_len } = bounds;
        Self {
            planner: Planner::new(dataset.clone(), cache.clone()),
            cache,
            alone: None,
            dataset,
            sources,
            engine,
            units: Vec::new(),
            free_numbers: Vec::new(),
            lanes: Vec::new(),
            ahead: Ahead { count: 0, len: 0, len_max: ahead_len_max },
            has_index: false,
            arena: Arena::new(window_len.saturating_add(ahead_len_max)),
            held_len: 0,
            held_len_max: 0,
            cached_count: 0,
            completions: Vec::new(),
            patience,
            before_wait,
            times: FetchTimes::default(),
        }
    }

    /// Goes on with the units of another epoch, whose first batch has this number.
    pub(super) fn append(&mut self, epoch: &EpochPlan, first_batch: u64) {
        self.planner.append(epoch, first_batch);
    }

    /// Whether all units that it knows are submitted.
    pub(super) fn is_exhausted(&mut self, drafts: &Drafts) -> bool {
        !self.planner.has_next(drafts)
    }

    /// Waits for the next sample of a lane, and submits what has room meanwhile. A visit is to be followed by
    /// [`leave`](Self::leave).
    pub(super) fn visit(&mut self, lane: u64, location: &Location, drafts: &mut Drafts) -> Result<Visit, ReadError> {
        let unit = self.enter(lane, drafts)?;
        self.arrival(unit, location)
    }

    /// The stored bytes of a sample that was visited and not left; none where they lie in its batch.
    pub(super) fn stored(&self, visit: Visit, location: &Location) -> &[u8] {
        match self.unit(visit.unit).and_then(|unit| unit.part(visit.part)) {
            Some(Part { run, state: State::Filled(filled) }) => run.stored(filled, location),
            Some(Part { run, state: State::Kept(kept, part) }) => {
                kept.parts.get(*part).map_or(&[], |(_, filled)| run.stored(filled, location))
            }
            _ => &[],
        }
    }

    /// Hands over the slot of a sample that was read into its batch.
    pub(super) fn take_in_place(&mut self, visit: Visit) -> Option<Filled> {
        let unit = self.unit_mut(visit.unit).filter(|unit| unit.in_place)?;
        match mem::replace(&mut unit.part_mut(visit.part)?.state, State::Taken) {
            State::Filled(filled) => Some(filled),
            _ => None,
        }
    }

    /// Why the bytes of a visited sample are not there, and the buffer that they were to go to.
    pub(super) fn take_failure(&mut self, visit: Visit) -> Option<(engine::FileError, Buffer)> {
        match mem::replace(&mut self.unit_mut(visit.unit)?.part_mut(visit.part)?.state, State::Taken) {
            State::Failed(failed) => Some(*failed),
            _ => None,
        }
    }

    /// Whether nothing but a visited sample was read with it.
    pub(super) fn is_alone(&self, visit: Visit, location: &Location) -> bool {
        let part = self.unit(visit.unit).and_then(|unit| unit.part(visit.part));
        part.is_some_and(|part| part.run == Run::of_sample(location))
    }

    /// Takes back the buffer of a visited sample's read, which failed.
    pub(super) fn give(&mut self, visit: Visit, buffer: Buffer) {
        match self.unit(visit.unit).and_then(|unit| unit.reservation.as_deref()) {
            Some(reservation) => reservation.give(buffer),
            None => self.arena.give(buffer),
        }
    }

    /// Reads a sample by itself, with as much patience as for any read.
    pub(super) fn read_alone(&mut self, ordinal: u64, location: &Location) -> Result<Filled, ReadError> {
        let (run, source) = (Run::of_sample(location), self.sources.of(location.segment)?);
        let request = run.request(source, ALONE, |len| {
            Buffer::try_with_capacity(len).ok_or(ReadError::NoMemory { len: len as u64 })
        })?;
        self.engine.submit(request)?;
        let result = loop {
            match self.alone.take() {
                Some(result) => break result,
                None => self.absorb_one(run)?,
            }
        };
        result.map_err(|failed| ReadError::unreadable(&self.dataset, ordinal, failed.error))
    }

    /// Says that a visited sample is done with.
    pub(super) fn leave(&mut self, visit: Visit) -> Result<(), ReadError> {
        let Some(unit) = self.units.get_mut(visit.unit as usize).and_then(Option::as_mut) else { return Ok(()) };
        unit.left_count -= 1;
        if unit.left_count > 0 {
            return Ok(());
        }
        if unit.reservation.is_some() {
            self.await_all_parts(visit.unit)?;
        }
        self.free_numbers.push(visit.unit);
        let Some(unit) = self.units.get_mut(visit.unit as usize).and_then(Option::take) else { return Ok(()) };
        self.held_len -= if unit.in_place { 0 } else { unit.len };
        for part in unit.parts.into_iter().chain(unit.more) {
            let buffer = match part.state {
                State::Filled(filled) => filled.into_buffer(),
                State::Failed(failed) => failed.1,
                State::Kept(..) | State::Away | State::Taken => continue,
            };
            match &unit.reservation {
                Some(reservation) => reservation.give(buffer),
                None => self.arena.give(buffer),
            }
        }
        Ok(())
    }

    /// Starts reads that are only queued, takes what has arrived, and does not wait.
    pub(super) fn service(&mut self) -> Result<(), ReadError> {
        if self.engine.in_flight() == 0 {
            return Ok(());
        }
        let begin = Instant::now();
        let result = self.absorb(Wait::None);
        self.times.post += begin.elapsed();
        result
    }

    /// Waits a moment for reads, for who has nothing else to do; `false` where there are none in flight.
    pub(super) fn idle(&mut self) -> Result<bool, ReadError> {
        if self.engine.in_flight() == 0 {
            return Ok(false);
        }
        self.absorb(Wait::Within { count: 1, timeout: Duration::from_millis(2) })?;
        Ok(true)
    }

    /// Adds what it knows to the statistics.
    pub(super) fn count_into(&self, stats: &mut EpochStats) {
        let done = self.engine.stats();
        stats.read_bytes = done.read_bytes;
        stats.request_count = done.request_count;
        stats.registered_bytes = done.registered_bytes;
        stats.cached_samples = self.cached_count;
        stats.held_bytes_max = self.held_len_max;
        stats.slab_bytes = self.arena.slabs_len();
        stats.stages.prepare = self.times.prepare;
        stats.stages.post = self.times.post;
        stats.stages.wait_for_reads = self.times.wait;
        stats.io = self.sources.mode();
    }

    pub(super) fn engine_name(&self) -> &'static str {
        self.engine.name()
    }

    /// What the engine has to do without.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.engine.remarks()
    }

    /// The number of the unit of the lane's next sample, which is begun.
    fn enter(&mut self, lane: u64, drafts: &mut Drafts) -> Result<u32, ReadError> {
        let place = to_usize(lane);
        if let Some(unit) = self.lanes.get_mut(place).and_then(Lane::visit) {
            return Ok(unit);
        }
        let number = loop {
            if let Some(number) = self.lanes.get(place).and_then(Lane::next) {
                break number;
            }
            let planned = self.planner.next(drafts).ok_or_else(|| self.stopped())?;
            self.submit(planned, drafts)?;
        };
        let Some(unit) = self.unit(number) else { return Err(self.stopped()) };
        let (sample_count, len, was_cached) = (unit.sample_count, unit.len, unit.was_cached);
        self.cached_count += if was_cached { u64::from(sample_count) } else { 0 };
        self.ahead.count -= 1;
        self.ahead.len -= len;
        if let Some(lane) = self.lanes.get_mut(place) {
            lane.enter(sample_count);
        }
        self.read_ahead(drafts)?;
        self.lanes.get_mut(place).and_then(Lane::visit).ok_or_else(|| self.stopped())
    }

    /// Waits for the part of the unit that has the sample.
    fn arrival(&mut self, number: u32, location: &Location) -> Result<Visit, ReadError> {
        loop {
            let Some(unit) = self.units.get_mut(number as usize).and_then(Option::as_mut) else {
                return Err(self.stopped());
            };
            if unit.on_the_way.is_some() {
                self.await_extent(number)?;
                continue;
            }
            if unit.failed.is_some() {
                return Err(unit.failed.take().map_or_else(|| self.stopped(), |error| *error));
            }
            let (index, in_place) = (unit.part_of(location), unit.in_place);
            let Some(part) = unit.part_mut(index) else { return Err(self.stopped()) };
            match &part.state {
                State::Filled(_) | State::Kept(..) => {
                    return Ok(Visit { unit: number, part: index, in_place, failed: false });
                }
                State::Failed(_) => return Ok(Visit { unit: number, part: index, in_place, failed: true }),
                State::Taken => return Err(self.stopped()),
                State::Away => {
                    let run = part.run;
                    self.absorb_one(run)?;
                }
            }
        }
    }

    /// Waits for the extent that another unit is reading; where that comes to nothing, reads what the unit needs.
    fn await_extent(&mut self, number: u32) -> Result<(), ReadError> {
        let on_the_way = self.unit_mut(number).and_then(|unit| unit.on_the_way.take());
        let (Some(waiting), Some(cache)) = (on_the_way, self.cache.clone()) else { return Ok(()) };
        let (on_the_way, runs) = *waiting;
        loop {
            match cache.find(on_the_way, &runs) {
                Arrival::Kept(kept) => {
                    self.unit_mut(number).into_iter().for_each(|unit| unit.take_kept(&kept));
                    return Ok(());
                }
                Arrival::OnTheWay => self.absorb_one(runs.first().copied().unwrap_or_default())?,
                Arrival::Never => break,
            }
        }
        let Some(mut unit) = self.units.get_mut(number as usize).and_then(Option::take) else { return Ok(()) };
        let (held_len, submitted) = (unit.len, self.submit_runs(&mut unit, runs, number, None));
        self.held_len += unit.len - held_len;
        if let Some(slot) = self.units.get_mut(number as usize) {
            *slot = Some(unit);
        }
        submitted
    }

    /// Waits until all parts of a unit have arrived: it may have more than its samples need.
    fn await_all_parts(&mut self, number: u32) -> Result<(), ReadError> {
        loop {
            let Some(unit) = self.unit(number) else { return Ok(()) };
            let parts = (0..unit.part_count).filter_map(|part| unit.part(part));
            let Some(run) = parts.filter(|part| matches!(part.state, State::Away)).map(|part| part.run).next() else {
                return Ok(());
            };
            self.absorb_one(run)?;
        }
    }

    /// Waits until something has arrived; `run` is what is needed.
    fn absorb_one(&mut self, run: Run) -> Result<(), ReadError> {
        if self.engine.in_flight() == 0 {
            return Err(self.stopped());
        }
        (self.before_wait)();
        let begin = Instant::now();
        let result = self.patience.wait(self.engine.as_mut(), 1, &mut self.completions, || run.shown(&self.dataset));
        self.times.wait += begin.elapsed();
        result?;
        self.distribute();
        Ok(())
    }

    fn absorb(&mut self, wait: Wait) -> Result<(), ReadError> {
        self.engine.complete(wait, &mut self.completions)?;
        self.distribute();
        Ok(())
    }

    fn distribute(&mut self) {
        for Completion { token, result } in self.completions.drain(..) {
            if token == ALONE {
                self.alone = Some(result);
                continue;
            }
            let (number, part) = place_of(token);
            let unit = self.units.get_mut(number as usize).and_then(Option::as_mut);
            // A unit is held until its last sample is done with, so until all of its parts have arrived.
            let Some(part) = unit.and_then(|unit| unit.part_mut(part)) else { continue };
            part.state = match result {
                Ok(filled) => State::Filled(filled),
                Err(failed) => State::Failed(Box::new((failed.error, failed.buffer))),
            };
            if let Some(unit) = self.units.get_mut(number as usize).and_then(Option::as_mut)
                && unit.reservation.is_some()
            {
                unit.keep_if_whole();
            }
        }
    }

    fn unit(&self, number: u32) -> Option<&Unit> {
        self.units.get(number as usize).and_then(Option::as_ref)
    }

    fn unit_mut(&mut self, number: u32) -> Option<&mut Unit> {
        self.units.get_mut(number as usize).and_then(Option::as_mut)
    }

    pub(super) fn stopped(&self) -> ReadError {
        EngineError::Stopped { engine: self.engine.name(), in_flight: self.engine.in_flight() }.into()
    }
}

fn place_of(token: u64) -> (u32, u32) {
    #[expect(clippy::cast_possible_truncation, reason = "a token is two numbers of 32 bits")]
    ((token >> 32) as u32, token as u32)
}

/// Memory that units may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct FetchBounds {
    /// Of those ahead of their need.
    pub(super) ahead_len_max: u64,
    /// Of those being visited, about.
    pub(super) window_len: u64,
}
