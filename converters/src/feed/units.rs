//! Entries of a source that can be read anywhere: threads read units ahead, one takes them in order.

use std::collections::VecDeque;
use std::ops::Range;
use std::thread;

use super::order::{Unit, UnitPlan};
use super::{At, Content, Entry, Feed, How, Id, Long, PATIENCE, Skip, check};
use crate::window::{Bounds, Maker, Next, Window};
use crate::{ConvertError, Events};
use grainstore_sources::{Bad, Item, Layout, Place, Reach, Samples, Source};

/// Bytes of units read ahead, as many as are shuffled together: 128 MiB. One unit may come on top.
const AHEAD_BYTES: u64 = 128 << 20;
/// Units read ahead, so that a row of empty ones is bounded too.
const AHEAD_UNITS: usize = 4096;

pub(super) fn feed<R>(
    source: &dyn Source,
    plan: &UnitPlan,
    how: How,
    skip: Skip<'_>,
    consume: impl FnOnce(&mut dyn Feed) -> Result<R, ConvertError>,
) -> Result<R, ConvertError> {
    let start = Start::after(plan, skip);
    let count = plan.unit_count() - start.unit;
    let window = Window::new(Bounds { count, positions_max: AHEAD_UNITS, bytes_max: AHEAD_BYTES });
    let work = Work { source, plan, layout: how.layout, first: start.unit };
    thread::scope(|scope| {
        let started = work.start(&window, how.readers.min(count), scope);
        let mut feed =
            UnitFeed { work: &work, window: &window, next: start.unit, drop: start.drop, skip, queue: VecDeque::new() };
        let result = started.and_then(|()| consume(&mut feed));
        // Threads that wait for room would otherwise wait for ever.
        window.close();
        result
    })
}

/// Where to begin.
struct Start {
    /// The first unit of a group.
    unit: usize,
    /// Entries of that group that were dealt with.
    drop: u64,
}

impl Start {
    /// Passes over whole groups, unread.
    fn after(plan: &UnitPlan, skip: Skip<'_>) -> Self {
        let (mut unit, mut left) = (0, skip.count);
        while left > 0 && unit < plan.unit_count() {
            let group = plan.group(unit);
            let counted: u64 = group.clone().map(|number| counted_in(plan.unit(number), skip)).sum();
            if counted > left {
                break;
            }
            left -= counted;
            unit = group.end;
        }
        Self { unit, drop: left }
    }
}

fn counted_in(unit: Unit, skip: Skip<'_>) -> u64 {
    (0..unit.sample_count).filter(|&n| (skip.counts)(Id { index: unit.id.index + n, ..unit.id })).count() as u64
}

#[derive(Clone, Copy)]
struct Work<'a> {
    source: &'a dyn Source,
    plan: &'a UnitPlan,
    layout: Layout,
    first: usize,
}

impl Work<'_> {
    /// Starts the threads, all of them or as many as the system gives.
    fn start<'scope>(
        &'scope self,
        window: &'scope Window<Vec<Entry>>,
        readers: usize,
        scope: &'scope thread::Scope<'scope, '_>,
    ) -> Result<(), ConvertError> {
        for started in 0..readers {
            let maker = window.maker();
            let thread = thread::Builder::new().name(format!("read-{started}"));
            match thread.spawn_scoped(scope, move || self.read_ahead(&maker)) {
                Err(error) if started == 0 => return Err(ConvertError::Threads(error.to_string())),
                Err(_) => return Ok(()),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// One thread's work: units of the positions that it begins, until there is none.
    fn read_ahead(&self, maker: &Maker<'_, Vec<Entry>>) {
        while let Some(position) = maker.begin() {
            let unit = self.plan.unit(self.first + position);
            let mut opened = self.source.open(unit.part, unit.position, self.layout);
            let len = unit.memory_len().or_else(|| opened.as_mut().ok()?.ahead_len()).unwrap_or(0);
            if !maker.reserve(position, len) {
                return;
            }
            let entries = match opened {
                Ok(mut samples) => self.read_unit(unit, samples.as_mut()),
                Err(bad) => lost(unit, 0, &bad),
            };
            maker.put(position, len, entries);
        }
    }

    /// As many entries as the unit has samples, whatever happens.
    fn read_unit(&self, unit: Unit, samples: &mut dyn Samples) -> Vec<Entry> {
        let mut entries = Vec::new();
        for n in 0..unit.sample_count {
            let id = Id { index: unit.id.index + n, ..unit.id };
            let content = match samples.next() {
                Ok(Some(Item::Whole { sample, offset })) => Content::Whole(sample, offset),
                Ok(Some(Item::Long { .. })) => {
                    Content::Long(Long::At(At { part: unit.part, position: unit.position, behind: n }))
                }
                Ok(None) => {
                    entries.extend(lost(unit, n, &self.fewer(unit, n)));
                    break;
                }
                Err(bad) if bad.reach == Reach::Rest => {
                    entries.extend(lost(unit, n, &bad));
                    break;
                }
                Err(bad) => Content::Bad(bad),
            };
            entries.push(Entry { id, content });
        }
        entries
    }

    fn fewer(&self, unit: Unit, found: u64) -> Bad {
        let place = Place { record: Some(unit.id.index + found), ..Place::default() };
        let why = format!(
            "{found} of {} samples are left of those that were there before: it has changed",
            unit.sample_count
        );
        Bad::new(&self.source.description().parts[unit.part].path, place, why, Reach::Rest)
    }
}

/// The entries of the unit from its `from`-th sample on, all lost for one reason.
fn lost(unit: Unit, from: u64, bad: &Bad) -> Vec<Entry> {
    let entry = |n| Entry { id: Id { index: unit.id.index + n, ..unit.id }, content: Content::Bad(bad.clone()) };
    (from..unit.sample_count).map(entry).collect()
}

struct UnitFeed<'a> {
    work: &'a Work<'a>,
    window: &'a Window<Vec<Entry>>,
    /// The unit that comes next out of the window; the start of a group whenever the queue is empty.
    next: usize,
    /// Entries that were dealt with before and are still to come.
    drop: u64,
    skip: Skip<'a>,
    queue: VecDeque<Entry>,
}

impl UnitFeed<'_> {
    fn take_unit(&mut self, events: &dyn Events) -> Result<Vec<Entry>, ConvertError> {
        loop {
            match self.window.next(PATIENCE) {
                Next::Item(entries) => {
                    self.next += 1;
                    return Ok(entries);
                }
                Next::NotYet => check(events)?,
                Next::End => return Err(ConvertError::Threads("all of them have ended".into())),
            }
        }
    }

    fn take_group(&mut self, events: &dyn Events) -> Result<(), ConvertError> {
        let Range { start, end } = self.work.plan.group(self.next);
        let mut entries = Vec::new();
        for _ in start..end {
            entries.extend(self.take_unit(events)?);
        }
        self.work.plan.shuffle(start, &mut entries);
        self.queue.extend(entries);
        Ok(())
    }
}

impl Feed for UnitFeed<'_> {
    fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        loop {
            if let Some(entry) = self.queue.pop_front() {
                if self.drop > 0 && (self.skip.counts)(entry.id) {
                    self.drop -= 1;
                    continue;
                }
                return Ok(Some(entry));
            }
            if self.next == self.work.plan.unit_count() {
                return Ok(None);
            }
            self.take_group(events)?;
        }
    }
}
