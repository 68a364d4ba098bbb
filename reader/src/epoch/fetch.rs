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
use grainstore_store::{Dataset, Location};

use super::arena::{Arena, Taken};
use super::drafts::Drafts;
use super::lane::Lane;
use super::planned::{Planned, Planner};
use super::stats::EpochStats;
use super::units::Units;
use crate::ReadError;
use crate::engine::{self, Buffer, Completion, Engine, EngineError, Filled, Wait};
use crate::patience::Patience;
use crate::run::Run;
use crate::sources::Sources;

/// Room that is waited for before more units are submitted, so that they go to the kernel together.
const REFILL_LEN_MAX: u64 = 2 << 20;

/// Fetches units and lends the stored bytes of their samples.
pub(super) struct Fetch {
    dataset: Dataset,
    sources: Arc<Sources>,
    engine: Box<dyn Engine>,
    planner: Planner,
    /// Submitted units by number; the number of one that is done serves again.
    units: Vec<Option<Unit>>,
    free_numbers: Vec<u32>,
    lanes: Vec<Lane>,
    ahead: Ahead,
    arena: Arena,
    held_len: u64,
    held_len_max: u64,
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

/// A submitted unit. Looked at for every sample: errors, which are large and rare, stand elsewhere.
struct Unit {
    left_count: u32,
    sample_count: u32,
    /// Whether its buffers are its batch's.
    in_place: bool,
    part_count: u8,
    parts: [Part; 2],
    /// Bytes of memory of its buffers.
    len: u64,
    /// Why it is not whole. Told when it is visited, so that what comes before it is handed out.
    failed: Option<Box<ReadError>>,
}

/// One of the reads of a unit.
struct Part {
    run: Run,
    state: State,
}

enum State {
    /// Not there yet, or no more: it is lent to the engine or the batch.
    Away,
    Filled(Filled),
    Failed(Box<engine::ReadError>),
}

/// A sample whose bytes are there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    unit: u32,
    part: u8,
    /// Whether they are in its batch.
    pub(super) in_place: bool,
}

impl Unit {
    fn of(sample_count: u32) -> Self {
        let part = || Part { run: Run::default(), state: State::Away };
        let (part_count, parts) = (0, [part(), part()]);
        Self { left_count: sample_count, sample_count, in_place: false, part_count, parts, len: 0, failed: None }
    }
}

impl Fetch {
    /// Fetches with at most `ahead_len_max` bytes ahead of their need. Nothing is read yet.
    pub(super) fn new(
        dataset: Dataset,
        sources: Arc<Sources>,
        engine: Box<dyn Engine>,
        bounds: FetchBounds,
        patience: Patience,
        before_wait: Box<dyn Fn() + Send>,
    ) -> Self {
        let FetchBounds { ahead_len_max, window_len } = bounds;
        Self {
            planner: Planner::new(dataset.clone()),
            dataset,
            sources,
            engine,
            units: Vec::new(),
            free_numbers: Vec::new(),
            lanes: Vec::new(),
            ahead: Ahead { count: 0, len: 0, len_max: ahead_len_max },
            arena: Arena::new(window_len.saturating_add(ahead_len_max)),
            held_len: 0,
            held_len_max: 0,
            completions: Vec::new(),
            patience,
            before_wait,
            times: FetchTimes::default(),
        }
    }

    /// Goes on with the units of another epoch, whose first batch has this number.
    pub(super) fn append(&mut self, units: Units, first_batch: u64) {
        self.planner.append(units, first_batch);
    }

    /// Whether all units that it knows are submitted.
    pub(super) fn is_exhausted(&mut self, drafts: &Drafts) -> bool {
        !self.planner.has_next(drafts)
    }

    /// Waits for the next sample of a lane, and submits what has room meanwhile. A visit is to be followed by
    /// [`leave`](Self::leave).
    pub(super) fn visit(&mut self, lane: u64, due: (u64, &Location), drafts: &mut Drafts) -> Result<Visit, ReadError> {
        let unit = self.enter(lane, drafts)?;
        self.arrival(unit, due)
    }

    /// The stored bytes of a sample that was visited and not left; none where they lie in its batch.
    pub(super) fn stored(&self, visit: Visit, location: &Location) -> &[u8] {
        match self.unit(visit.unit).and_then(|unit| unit.parts.get(usize::from(visit.part))) {
            Some(Part { run, state: State::Filled(filled) }) => run.stored(filled, location),
            _ => &[],
        }
    }

    /// Hands over the slot of a sample that was read into its batch.
    pub(super) fn take_in_place(&mut self, visit: Visit) -> Option<Filled> {
        let unit = self.unit_mut(visit.unit).filter(|unit| unit.in_place)?;
        match mem::replace(&mut unit.parts.get_mut(usize::from(visit.part))?.state, State::Away) {
            State::Filled(filled) => Some(filled),
            _ => None,
        }
    }

    /// Says that a visited sample is done with.
    pub(super) fn leave(&mut self, visit: Visit) {
        let Some(slot) = self.units.get_mut(visit.unit as usize) else { return };
        let Some(unit) = slot else { return };
        unit.left_count -= 1;
        if unit.left_count > 0 {
            return;
        }
        self.free_numbers.push(visit.unit);
        let Some(unit) = slot.take() else { return };
        self.held_len -= if unit.in_place { 0 } else { unit.len };
        for part in unit.parts {
            if let State::Filled(filled) = part.state {
                self.arena.give(filled.into_buffer());
            }
        }
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
        let Some(&Unit { sample_count, len, .. }) = self.unit(number) else { return Err(self.stopped()) };
        self.ahead.count -= 1;
        self.ahead.len -= len;
        if let Some(lane) = self.lanes.get_mut(place) {
            lane.enter(sample_count);
        }
        self.read_ahead(drafts)?;
        self.lanes.get_mut(place).and_then(Lane::visit).ok_or_else(|| self.stopped())
    }

    /// Submits the next units as far as there is room, once there is room for several.
    pub(super) fn read_ahead(&mut self, drafts: &mut Drafts) -> Result<(), ReadError> {
        let refill_len = REFILL_LEN_MAX.min(self.ahead.len_max / 4);
        if self.ahead.count > 0 && self.ahead.len > self.ahead.len_max - refill_len {
            return Ok(());
        }
        let (begin, posted) = (Instant::now(), self.times.post);
        while let Some(planned) = self.planner.next(drafts) {
            if self.ahead.count > 0 && !self.has_room(&planned)? {
                self.planner.put_back(planned);
                break;
            }
            self.submit(planned, drafts)?;
        }
        self.times.prepare += begin.elapsed().saturating_sub(self.times.post - posted);
        self.service()
    }

    fn has_room(&mut self, planned: &Planned) -> Result<bool, ReadError> {
        if self.ahead.len.saturating_add(planned.memory_len_max()) > self.ahead.len_max {
            return Ok(false);
        }
        let requests_max = self.sources.requests_max();
        if self.engine.in_flight() >= requests_max {
            self.absorb(Wait::None)?;
        }
        Ok(self.engine.in_flight() < requests_max)
    }

    fn submit(&mut self, planned: Planned, drafts: &mut Drafts) -> Result<(), ReadError> {
        let number = self.free_number();
        let Planned { lane, sample_count, in_place, runs } = planned;
        let mut unit = Unit::of(sample_count);
        let slot = in_place.and_then(|(batch, index)| {
            let slot = drafts.lend_slot(batch, index)?;
            drafts.memory(batch).into_iter().for_each(|memory| self.engine.register(memory));
            Some(slot)
        });
        unit.in_place = slot.is_some();
        match runs {
            Ok(runs) => self.submit_runs(&mut unit, runs, number, slot)?,
            Err(error) => unit.failed = Some(Box::new(error)),
        }
        self.ahead.count += 1;
        self.ahead.len += unit.len;
        self.held_len += if unit.in_place { 0 } else { unit.len };
        self.held_len_max = self.held_len_max.max(self.held_len);
        if let Some(slot) = self.units.get_mut(number as usize) {
            *slot = Some(unit);
        }
        let lane = to_usize(lane);
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        self.lanes[lane].push(number);
        Ok(())
    }

    fn submit_runs(
        &mut self,
        unit: &mut Unit,
        runs: Vec<Run>,
        number: u32,
        mut slot: Option<Buffer>,
    ) -> Result<(), ReadError> {
        for (part, run) in runs.into_iter().enumerate().take(unit.parts.len()) {
            match self.submit_run(run, u64::from(number) << 1 | part as u64, slot.take()) {
                Ok(len) => unit.len += len,
                Err(ReadError::Engine(error)) => return Err(error.into()),
                Err(error) => unit.failed = unit.failed.take().or(Some(Box::new(error))),
            }
            unit.parts[part].run = run;
            if run.len == 0 {
                unit.parts[part].state = State::Filled(Filled::new(Buffer::with_capacity(0), 0..0));
            }
            unit.part_count += 1;
        }
        Ok(())
    }

    /// Returns the bytes of memory that the run's buffer takes.
    fn submit_run(&mut self, run: Run, token: u64, slot: Option<Buffer>) -> Result<u64, ReadError> {
        if run.len == 0 {
            // There is nothing to wait for, so that the unit may go before an engine had answered.
            return Ok(0);
        }
        let source = self.sources.of(run.segment)?;
        let request = run.request(source, token, |len| match slot {
            Some(slot) => Ok(slot),
            None => self.buffer(len),
        })?;
        let len = match request.buffer.capacity() as u64 {
            // Mapped bytes take no buffer; memory they take all the same.
            0 => run.blocks_len(),
            capacity => capacity,
        };
        let begin = Instant::now();
        let submitted = self.engine.submit(request);
        self.times.post += begin.elapsed();
        submitted?;
        Ok(len)
    }

    fn buffer(&mut self, len: usize) -> Result<Buffer, ReadError> {
        Ok(match self.arena.take(len)? {
            Taken::Recycled(buffer) | Taken::Lone(buffer) => buffer,
            Taken::NewSlab(buffer) => {
                self.engine.register(&buffer);
                buffer
            }
        })
    }

    /// Waits for the part of the unit that has the sample.
    fn arrival(&mut self, number: u32, due: (u64, &Location)) -> Result<Visit, ReadError> {
        loop {
            let Some(unit) = self.units.get_mut(number as usize).and_then(Option::as_mut) else {
                return Err(self.stopped());
            };
            if unit.failed.is_some() {
                return Err(unit.failed.take().map_or_else(|| self.stopped(), |error| *error));
            }
            let index = u8::from(unit.part_count > 1 && !unit.parts[0].run.holds(due.1));
            let part = &mut unit.parts[usize::from(index)];
            match &part.state {
                State::Filled(_) => return Ok(Visit { unit: number, part: index, in_place: unit.in_place }),
                State::Away => {
                    let run = part.run;
                    self.absorb_one(run)?;
                }
                State::Failed(_) => {
                    // The epoch ends with this error, so nobody waits for the part again.
                    if let State::Failed(error) = mem::replace(&mut part.state, State::Away) {
                        return Err(ReadError::unreadable(&self.dataset, due.0, *error));
                    }
                }
            }
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
            let unit = self.units.get_mut(to_usize(token >> 1)).and_then(Option::as_mut);
            // A unit is held until its last sample is done with, so until all of its parts have arrived.
            let Some(part) = unit.and_then(|unit| unit.parts.get_mut(to_usize(token & 1))) else { continue };
            part.state = match result {
                Ok(filled) => State::Filled(filled),
                Err(failed) => State::Failed(Box::new(failed.error)),
            };
        }
    }

    fn free_number(&mut self) -> u32 {
        self.free_numbers.pop().unwrap_or_else(|| {
            self.units.push(None);
            // A unit takes more than a byte: there are never so many.
            u32::try_from(self.units.len() - 1).unwrap_or(u32::MAX)
        })
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

/// Memory that units may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct FetchBounds {
    /// Of those ahead of their need.
    pub(super) ahead_len_max: u64,
    /// Of those being visited, about.
    pub(super) window_len: u64,
}
