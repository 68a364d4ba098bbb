//! Reads the units of an epoch ahead of their need, within a bound of memory.
//!
//! A unit is *ahead* from its submission to its first visit, and *begun* from then to its last; then its buffers are
//! let go. Units are submitted in the order of first need as long as those ahead fit the budget, or there are none.
//! So memory is what the lanes are visiting (the window; a sample that is a unit of its own is visited and gone),
//! and the budget, or one unit if that is larger. It cannot get stuck: where the unit that is needed next has not
//! been submitted, it is the next to be, since all others submitted are needed earlier.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_format::to_usize;
use grainstore_store::{Dataset, Location};

use super::spares::Spares;
use super::stats::EpochStats;
use super::units::{UnitSpec, Units};
use crate::ReadError;
use crate::engine::{self, Completion, Engine, EngineError, Filled, Wait};
use crate::run::Run;
use crate::sources::Sources;

/// Fetches units and lends the stored bytes of their samples.
pub(super) struct Fetch {
    dataset: Dataset,
    sources: Arc<Sources>,
    engine: Box<dyn Engine>,
    units: Units,
    /// The next unit to be submitted, once it has been looked at.
    next: Option<Planned>,
    next_number: u64,
    /// Submitted units by number.
    held: HashMap<u64, Unit>,
    /// The numbers of each lane's units in the order of their visit.
    lanes: Vec<VecDeque<u64>>,
    ahead: Ahead,
    held_len: u64,
    held_len_max: u64,
    spares: Spares,
    completions: Vec<Completion>,
    wait: Duration,
}

/// Units that are submitted and not yet begun.
struct Ahead {
    count: u64,
    len: u64,
    len_max: u64,
}

/// A unit, and the bytes that it needs.
struct Planned {
    lane: u64,
    sample_count: u64,
    runs: Result<Vec<Run>, ReadError>,
}

/// A submitted unit.
struct Unit {
    left_count: u64,
    begun: bool,
    /// Bytes of memory of its buffers.
    len: u64,
    parts: Vec<Part>,
    /// Why it is not whole. Told when it is visited, so that what comes before it is handed out.
    failed: Option<ReadError>,
}

struct Part {
    run: Run,
    state: State,
}

enum State {
    InFlight,
    Filled(Filled),
    Failed(engine::ReadError),
}

impl Fetch {
    /// Fetches `units` with at most `ahead_len_max` bytes ahead of their need. Nothing is read yet.
    pub(super) fn new(
        dataset: Dataset,
        sources: Arc<Sources>,
        engine: Box<dyn Engine>,
        units: Units,
        ahead_len_max: u64,
    ) -> Self {
        Self {
            dataset,
            sources,
            engine,
            units,
            next: None,
            next_number: 0,
            held: HashMap::new(),
            lanes: Vec::new(),
            ahead: Ahead { count: 0, len: 0, len_max: ahead_len_max },
            held_len: 0,
            held_len_max: 0,
            spares: Spares::new(ahead_len_max / 4),
            completions: Vec::new(),
            wait: Duration::ZERO,
        }
    }

    /// The stored bytes of the next sample of a lane. Waits for them, and submits what has room meanwhile.
    pub(super) fn stored(&mut self, lane: u64, ordinal: u64, location: &Location) -> Result<&[u8], ReadError> {
        let number = self.enter(lane)?;
        let part = self.arrival(number, ordinal, location)?;
        let part = self.held.get(&number).and_then(|unit| unit.parts.get(part));
        Ok(match part {
            Some(Part { run, state: State::Filled(filled) }) => run.stored(filled, location),
            _ => &[],
        })
    }

    /// Says that the sample that `stored` lent last of this lane is done with.
    pub(super) fn leave(&mut self, lane: u64) {
        let Some(queue) = self.lanes.get_mut(to_usize(lane)) else { return };
        let Some(unit) = queue.front().and_then(|number| self.held.get_mut(number)) else { return };
        unit.left_count -= 1;
        if unit.left_count > 0 {
            return;
        }
        let unit = queue.pop_front().and_then(|number| self.held.remove(&number));
        for unit in unit.into_iter() {
            self.held_len -= unit.len;
            for part in unit.parts {
                if let State::Filled(filled) = part.state {
                    self.spares.give(filled.into_buffer());
                }
            }
        }
    }

    /// Adds what it knows to the statistics.
    pub(super) fn count_into(&self, stats: &mut EpochStats) {
        let done = self.engine.stats();
        stats.read_bytes = done.read_bytes;
        stats.request_count = done.request_count;
        stats.wait = self.wait;
        stats.held_bytes_max = self.held_len_max;
        stats.io = self.sources.mode();
    }

    /// The number of the lane's first unit, which is begun.
    fn enter(&mut self, lane: u64) -> Result<u64, ReadError> {
        let number = loop {
            if let Some(&number) = self.lanes.get(to_usize(lane)).and_then(VecDeque::front) {
                break number;
            }
            let planned = self.planned().ok_or_else(|| self.stopped())?;
            self.submit(planned)?;
        };
        if let Some(unit) = self.held.get_mut(&number).filter(|unit| !unit.begun) {
            unit.begun = true;
            self.ahead.count -= 1;
            self.ahead.len -= unit.len;
            self.read_ahead()?;
        }
        Ok(number)
    }

    /// Submits the next units as far as there is room.
    fn read_ahead(&mut self) -> Result<(), ReadError> {
        while let Some(planned) = self.planned() {
            if self.ahead.count > 0 && !self.has_room(&planned)? {
                self.next = Some(planned);
                break;
            }
            self.submit(planned)?;
        }
        Ok(())
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

    /// The next unit to be submitted; the caller submits it or puts it back.
    fn planned(&mut self) -> Option<Planned> {
        self.next.take().or_else(|| self.units.next().map(|spec| Planned::new(&self.dataset, &spec)))
    }

    fn submit(&mut self, planned: Planned) -> Result<(), ReadError> {
        let number = self.next_number;
        self.next_number += 1;
        let mut unit = Unit { left_count: planned.sample_count, begun: false, len: 0, parts: vec![], failed: None };
        match planned.runs {
            Ok(runs) => {
                for run in runs {
                    match self.submit_run(run, number << 1 | unit.parts.len() as u64) {
                        Ok(len) => unit.len += len,
                        Err(ReadError::Engine(error)) => return Err(error.into()),
                        Err(error) => unit.failed = unit.failed.or(Some(error)),
                    }
                    unit.parts.push(Part { run, state: State::InFlight });
                }
            }
            Err(error) => unit.failed = Some(error),
        }
        self.ahead.count += 1;
        self.ahead.len += unit.len;
        self.held_len += unit.len;
        self.held_len_max = self.held_len_max.max(self.held_len + self.spares.memory_len());
        self.held.insert(number, unit);
        let lane = to_usize(planned.lane);
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, VecDeque::new);
        }
        self.lanes[lane].push_back(number);
        Ok(())
    }

    /// Returns the bytes of memory that the run's buffer takes.
    fn submit_run(&mut self, run: Run, token: u64) -> Result<u64, ReadError> {
        let source = self.sources.of(run.segment)?;
        let request = run.request(source, token, |len| self.spares.take(len))?;
        let len = request.buffer.memory_len() as u64;
        self.engine.submit(request)?;
        Ok(len)
    }

    /// Waits for the part of the unit that has the sample.
    fn arrival(&mut self, number: u64, ordinal: u64, location: &Location) -> Result<usize, ReadError> {
        loop {
            let Some(unit) = self.held.get_mut(&number) else { return Err(self.stopped()) };
            if let Some(error) = unit.failed.take() {
                return Err(error);
            }
            let index = unit.parts.iter().position(|part| part.run.holds(location)).unwrap_or(0);
            let Some(part) = unit.parts.get_mut(index) else { return Err(self.stopped()) };
            match &part.state {
                State::Filled(_) => return Ok(index),
                State::InFlight => self.absorb_one()?,
                State::Failed(_) => {
                    // The epoch ends with this error, so nobody waits for the part again.
                    if let State::Failed(error) = mem::replace(&mut part.state, State::InFlight) {
                        return Err(ReadError::unreadable(&self.dataset, ordinal, error));
                    }
                }
            }
        }
    }

    fn absorb_one(&mut self) -> Result<(), ReadError> {
        if self.engine.in_flight() == 0 {
            return Err(self.stopped());
        }
        let begin = Instant::now();
        let result = self.absorb(Wait::One);
        self.wait += begin.elapsed();
        result
    }

    fn absorb(&mut self, wait: Wait) -> Result<(), ReadError> {
        self.engine.complete(wait, &mut self.completions)?;
        for Completion { token, result } in self.completions.drain(..) {
            let part = self.held.get_mut(&(token >> 1)).and_then(|unit| unit.parts.get_mut(to_usize(token & 1)));
            // A unit is held until its last sample is done with, so until all of its parts have arrived.
            let Some(part) = part else { continue };
            part.state = match result {
                Ok(filled) => State::Filled(filled),
                Err(failed) => State::Failed(failed.error),
            };
        }
        Ok(())
    }

    fn stopped(&self) -> ReadError {
        EngineError::Stopped { engine: self.engine.name(), in_flight: self.engine.in_flight() }.into()
    }
}

impl Planned {
    fn new(dataset: &Dataset, spec: &UnitSpec) -> Self {
        let runs = spec.ordinals.iter().map(|ordinals| Run::of_samples(dataset, ordinals)).collect();
        Self { lane: spec.lane, sample_count: spec.len(), runs }
    }

    fn memory_len_max(&self) -> u64 {
        self.runs.iter().flatten().map(Run::memory_len_max).fold(0, u64::saturating_add)
    }
}
