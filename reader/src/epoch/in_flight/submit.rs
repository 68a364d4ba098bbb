//! Submits a unit: to the engine, or with what the cache has.

use super::{InFlight, token_of};
use crate::ReadError;
use crate::byte_range::ByteRange;
use crate::engine::{Buffer, Engine, Filled};
use crate::epoch::arena::Arena;
use crate::epoch::cache::Supply;
use crate::epoch::read_unit::{PartState, ReadUnit, UnitPart};
use crate::epoch::schedule::ScheduledUnit;
use crate::epoch::unit_number::UnitNumber;

/// Bytes that a unit counts for if it cannot be read. It takes hardly any memory, but where many fail, the number of
/// units in flight must stay bounded.
const FAILED_LEN: u64 = 1 << 20;

impl InFlight {
    /// Submits a unit. Its bytes go to `slot`, if there is one.
    pub(in crate::epoch) fn submit(&mut self, scheduled: ScheduledUnit, slot: Option<Buffer>) -> Result<(), ReadError> {
        let ScheduledUnit { number, sample_count, ranges, supply, .. } = scheduled;
        let mut unit = ReadUnit::of(sample_count);
        unit.in_place = slot.is_some();
        unit.was_cached = matches!(supply, Supply::Cached(_) | Supply::Arriving(_));
        match (ranges, supply) {
            (Ok(ranges), Supply::Read) => self.submit_ranges(&mut unit, ranges, number, slot)?,
            (Ok(_), Supply::ReadAndKeep(reservation, ranges)) => {
                unit.reservation = Some(reservation);
                self.submit_ranges(&mut unit, ranges, number, None)?;
                // Samples of no bytes have arrived already.
                unit.keep_if_whole();
            }
            (Ok(_), Supply::Cached(cached)) => unit.take_cached(&cached),
            (Ok(ranges), Supply::Arriving(extent)) => unit.arriving = Some(Box::new((extent, ranges))),
            (Err(error), _) => unit.failed = Some(error),
        }
        if unit.failed.is_some() {
            unit.len += FAILED_LEN;
        }
        self.ahead.count += 1;
        self.ahead.len += unit.len;
        if !unit.in_place {
            self.hold(unit.len);
        }
        let index = number.index();
        if self.units.len() <= index {
            self.units.resize_with(index + 1, || None);
        }
        debug_assert!(self.units[index].is_none(), "the number is free");
        self.units[index] = Some(unit);
        Ok(())
    }

    /// Submits the reads of a unit. If one of them cannot be submitted, the unit fails, not the epoch.
    pub(super) fn submit_ranges(
        &mut self,
        unit: &mut ReadUnit,
        ranges: Vec<ByteRange>,
        number: UnitNumber,
        mut slot: Option<Buffer>,
    ) -> Result<(), ReadError> {
        for range in ranges {
            if range.len == 0 {
                // No sample waits for these bytes, so the unit could be removed before an engine answers.
                let nothing = Filled::new(Buffer::with_capacity(0), 0..0);
                unit.push(UnitPart { range, state: PartState::Filled(nothing) });
                continue;
            }
            let token = token_of(number, unit.part_count);
            let arena = &mut self.arena;
            let reservation = unit.reservation.as_deref();
            let own_slot = slot.take();
            let submitted = self.reads.submit(range, token, |len, engine| match (own_slot, reservation) {
                (Some(slot), _) => Ok(slot),
                (None, Some(reservation)) => reservation.buffer(len),
                (None, None) => arena_buffer(arena, engine, len),
            });
            match submitted {
                Ok(memory_len) => unit.len += memory_len,
                Err(ReadError::Engine(error)) => return Err(error.into()),
                Err(error) => {
                    unit.failed.get_or_insert_with(|| Box::new(error));
                }
            }
            unit.push(UnitPart { range, state: PartState::Reading });
        }
        Ok(())
    }
}

fn arena_buffer(arena: &mut Arena, engine: &mut dyn Engine, len: usize) -> Result<Buffer, ReadError> {
    let taken = arena.take(len)?;
    if taken.is_of_new_slab {
        engine.register(&taken.buffer);
    }
    Ok(taken.buffer)
}
