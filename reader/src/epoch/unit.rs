//! A submitted unit: its reads, and where their bytes are.

use std::mem;
use std::sync::Arc;

use grainstore_store::Location;

use super::cache::{Kept, OnTheWay, Reservation};
use crate::ReadError;
use crate::engine::{self, Buffer, Filled};
use crate::run::Run;

/// A submitted unit. Looked at for every sample: errors, which are large and rare, stand elsewhere.
pub(super) struct Unit {
    pub(super) left_count: u32,
    pub(super) sample_count: u32,
    /// Whether its buffers are its batch's.
    pub(super) in_place: bool,
    pub(super) part_count: u32,
    /// The first of its reads: nearly always all of them.
    pub(super) parts: [Part; 2],
    /// The others, ascending by place like the first: there are some where only few samples of an extent are wanted.
    pub(super) more: Vec<Part>,
    /// Bytes of memory of its buffers.
    pub(super) len: u64,
    /// Whether nothing had to be read for it when it was submitted.
    pub(super) was_cached: bool,
    /// Where its buffers are to stay.
    pub(super) reservation: Option<Box<Reservation>>,
    /// The extent that another unit is reading, and what to read where that fails.
    pub(super) on_the_way: Option<Box<(OnTheWay, Vec<Run>)>>,
    /// Why it is not whole. Told when it is visited, so that what comes before it is handed out.
    pub(super) failed: Option<Box<ReadError>>,
}

/// One of the reads of a unit.
pub(super) struct Part {
    pub(super) run: Run,
    pub(super) state: State,
}

pub(super) enum State {
    /// Not there yet: it is lent to the engine.
    Away,
    /// Not there any more: it is the batch's, or of no use.
    Taken,
    Filled(Filled),
    /// In the cache, the part of this number.
    Kept(Arc<Kept>, usize),
    /// With the read's buffer.
    Failed(Box<(engine::FileError, Buffer)>),
}

impl Unit {
    pub(super) fn of(sample_count: u32) -> Self {
        let part = || Part { run: Run::default(), state: State::Away };
        let (parts, more) = ([part(), part()], Vec::new());
        Self {
            left_count: sample_count,
            sample_count,
            in_place: false,
            part_count: 0,
            parts,
            more,
            len: 0,
            was_cached: false,
            reservation: None,
            on_the_way: None,
            failed: None,
        }
    }

    pub(super) fn push(&mut self, part: Part) {
        match self.parts.get_mut(self.part_count as usize) {
            Some(place) => *place = part,
            None => self.more.push(part),
        }
        self.part_count += 1;
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().take(self.part_count as usize).chain(&self.more)
    }

    /// Makes what the cache has the unit's parts.
    pub(super) fn take_kept(&mut self, kept: &Arc<Kept>) {
        (self.part_count, self.more) = (0, Vec::new());
        for (number, (run, _)) in kept.parts.iter().enumerate() {
            self.push(Part { run: *run, state: State::Kept(Arc::clone(kept), number) });
        }
    }

    /// Puts its buffers into the cache once all are filled; gives its place there up where one has failed.
    pub(super) fn keep_if_whole(&mut self) {
        if self.parts().any(|part| matches!(part.state, State::Failed(_))) {
            self.reservation.iter_mut().for_each(|reservation| reservation.give_up());
            return;
        }
        if self.parts().any(|part| !matches!(part.state, State::Filled(_))) {
            return;
        }
        let Some(reservation) = self.reservation.take() else { return };
        let filled = |part: &mut Part| match mem::replace(&mut part.state, State::Taken) {
            State::Filled(filled) => Some((part.run, filled)),
            _ => None,
        };
        let count = self.part_count as usize;
        let parts = self.parts.iter_mut().take(count).chain(&mut self.more).filter_map(filled).collect();
        self.take_kept(&reservation.keep(parts));
    }

    pub(super) fn part(&self, number: u32) -> Option<&Part> {
        let number = number as usize;
        self.parts.get(number).or_else(|| self.more.get(number - self.parts.len()))
    }

    pub(super) fn part_mut(&mut self, number: u32) -> Option<&mut Part> {
        let (number, first_count) = (number as usize, self.parts.len());
        self.parts.get_mut(number).or_else(|| self.more.get_mut(number - first_count))
    }

    /// The part that has a sample.
    pub(super) fn part_of(&self, location: &Location) -> u32 {
        match self.part_count {
            0 | 1 => 0,
            2 => u32::from(!self.parts[0].run.holds(location)),
            _ => self.part_of_many(location),
        }
    }

    #[cold]
    fn part_of_many(&self, location: &Location) -> u32 {
        let begins_before = |part: &Part| part.run.offset <= location.offset;
        let first_count = self.parts.iter().take_while(|part| begins_before(part)).count();
        let count = match first_count == self.parts.len() {
            true => first_count + self.more.partition_point(begins_before),
            false => first_count,
        };
        u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX)
    }
}
