//! Submits the next units: to the engine, or with what the cache has.

use std::time::Instant;

use grainstore_format::to_usize;

use super::Fetch;
use crate::ReadError;
use crate::engine::{Buffer, Filled, Wait};
use crate::epoch::arena::Taken;
use crate::epoch::cache::{Reservation, Supply};
use crate::epoch::drafts::Drafts;
use crate::epoch::lane::Lane;
use crate::epoch::planned::Planned;
use crate::epoch::unit::{Part, State, Unit};
use crate::run::Run;

/// Room that is waited for before more units are submitted, so that they go to the kernel together.
const REFILL_LEN_MAX: u64 = 2 << 20;

/// What is read ahead while the index is not in memory: enough for the device. To look a unit up is to read 64 KiB of the
/// index or more, and the first batch would wait for it.
const NO_INDEX_LEN_MAX: u64 = 4 << 20;

/// Units ahead of their need, at most: where the cache has their bytes, those bound nothing.
const AHEAD_COUNT_MAX: u64 = 1 << 14;

/// What a unit that cannot be read counts for: it takes hardly any memory, but where many fail there would be no end of
/// them.
const FAILED_LEN: u64 = 1 << 20;

impl Fetch {
    /// Submits the next units as far as there is room, once there is room for several.
    pub(in crate::epoch) fn read_ahead(&mut self, drafts: &mut Drafts) -> Result<(), ReadError> {
        let len_max = self.ahead_len_max();
        let refill_len = REFILL_LEN_MAX.min(len_max / 4);
        if self.ahead.count >= AHEAD_COUNT_MAX || (self.ahead.count > 0 && self.ahead.len > len_max - refill_len) {
            return Ok(());
        }
        let (begin, posted) = (Instant::now(), self.times.post);
        let mut started_len = self.ahead.len;
        while let Some(planned) = self.planner.next(drafts) {
            if self.ahead.count > 0 && !self.has_room(&planned)? {
                self.planner.put_back(planned);
                break;
            }
            self.submit(planned, drafts)?;
            if self.ahead.len - started_len >= refill_len {
                // The first time there is room for many, and to look them up takes a while.
                self.service()?;
                started_len = self.ahead.len;
            }
        }
        self.times.prepare += begin.elapsed().saturating_sub(self.times.post - posted);
        self.service()
    }

    /// Bytes that may be ahead of their need now.
    fn ahead_len_max(&mut self) -> u64 {
        self.has_index = self.has_index || self.dataset.is_loaded();
        if self.has_index { self.ahead.len_max } else { self.ahead.len_max.min(NO_INDEX_LEN_MAX) }
    }

    fn has_room(&mut self, planned: &Planned) -> Result<bool, ReadError> {
        let len = self.ahead.len.saturating_add(planned.memory_len_max());
        if len > self.ahead_len_max() || self.ahead.count >= AHEAD_COUNT_MAX {
            return Ok(false);
        }
        let requests_max = self.sources.requests_max();
        if self.engine.in_flight() >= requests_max {
            self.absorb(Wait::None)?;
        }
        Ok(self.engine.in_flight() < requests_max)
    }

    pub(super) fn submit(&mut self, planned: Planned, drafts: &mut Drafts) -> Result<(), ReadError> {
        let number = self.free_number();
        let Planned { lane, sample_count, in_place, runs, supply } = planned;
        let mut unit = Unit::of(sample_count);
        let slot = in_place.and_then(|(batch, index)| {
            let slot = drafts.lend_slot(batch, index)?;
            drafts.memory(batch).into_iter().for_each(|memory| self.engine.register(memory));
            Some(slot)
        });
        unit.in_place = slot.is_some();
        unit.was_cached = matches!(supply, Supply::Kept(_) | Supply::OnTheWay(_));
        match (runs, supply) {
            (Ok(runs), Supply::Read) => self.submit_runs(&mut unit, runs, number, slot)?,
            (Ok(_), Supply::Keep(reservation, runs)) => {
                unit.reservation = Some(Box::new(reservation));
                self.submit_runs(&mut unit, runs, number, None)?;
                // Samples of no bytes are there already.
                unit.keep_if_whole();
            }
            (Ok(_), Supply::Kept(kept)) => unit.take_kept(&kept),
            (Ok(runs), Supply::OnTheWay(extent)) => unit.on_the_way = Some(Box::new((extent, runs))),
            (Err(error), _) => unit.failed = Some(Box::new(error)),
        }
        unit.len += if unit.failed.is_some() { FAILED_LEN } else { 0 };
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

    pub(super) fn submit_runs(
        &mut self,
        unit: &mut Unit,
        runs: Vec<Run>,
        number: u32,
        mut slot: Option<Buffer>,
    ) -> Result<(), ReadError> {
        for run in runs {
            let reservation = unit.reservation.as_deref();
            match self.submit_run(run, token_of(number, unit.part_count), slot.take(), reservation) {
                Ok(len) => unit.len += len,
                Err(ReadError::Engine(error)) => return Err(error.into()),
                Err(error) => unit.failed = unit.failed.take().or(Some(Box::new(error))),
            }
            let state = match run.len {
                0 => State::Filled(Filled::new(Buffer::with_capacity(0), 0..0)),
                _ => State::Away,
            };
            unit.push(Part { run, state });
        }
        Ok(())
    }

    /// Returns the bytes of memory that the run's buffer takes.
    fn submit_run(
        &mut self,
        run: Run,
        token: u64,
        slot: Option<Buffer>,
        reservation: Option<&Reservation>,
    ) -> Result<u64, ReadError> {
        if run.len == 0 {
            // There is nothing to wait for, so that the unit may go before an engine had answered.
            return Ok(0);
        }
        let source = self.sources.of(run.segment)?;
        let request = run.request(source, token, |len| match (slot, reservation) {
            (Some(slot), _) => Ok(slot),
            (None, Some(reservation)) => reservation.buffer(len),
            (None, None) => self.buffer(len),
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

    fn free_number(&mut self) -> u32 {
        self.free_numbers.pop().unwrap_or_else(|| {
            self.units.push(None);
            // A unit takes more than a byte: there are never so many.
            u32::try_from(self.units.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

/// The token of a read: its unit's number, and its own.
fn token_of(unit: u32, part: u32) -> u64 {
    u64::from(unit) << 32 | u64::from(part)
}
