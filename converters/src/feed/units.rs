//! Entries of a source that can be read anywhere: threads read units ahead, one takes them in order.

use std::collections::VecDeque;
use std::ops::Range;
use std::thread;

use super::order::{ReadUnit, UnitOrder};
use super::{At, Entry, EntryContent, Feed, How, Id, LongSample, PATIENCE, Skip, check};
use crate::window::{Maker, Next, OrderedWindow, WindowBounds};
use crate::{ConvertError, Events};
use grainstore_sources::{Bad, Layout, Reach, RecordLocation, SampleReader, Source, SourceSample};

/// Bytes of units read ahead, as many as are shuffled together: 128 MiB. One unit may come on top.
const AHEAD_BYTES: u64 = 128 << 20;
/// Units read ahead, so that a row of empty ones is bounded too.
const AHEAD_UNITS: usize = 4096;

pub(super) fn feed<R>(
    source: &dyn Source,
    plan: &UnitOrder,
    how: How,
    skip: Skip<'_>,
    consume: impl FnOnce(&mut dyn Feed) -> Result<R, ConvertError>,
) -> Result<R, ConvertError> {
    let start = Start::after(plan, skip);
    let count = plan.unit_count() - start.unit;
    let window = OrderedWindow::new(WindowBounds { count, positions_max: AHEAD_UNITS, bytes_max: AHEAD_BYTES });
    let work = UnitReader { source, plan, layout: how.layout, first: start.unit };
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
    /// Entries of that group to skip.
    drop: u64,
}

impl Start {
    /// Skips whole groups without reading them.
    fn after(plan: &UnitOrder, skip: Skip<'_>) -> Self {
        let mut unit = 0;
        let mut left = skip.count;
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

fn counted_in(unit: ReadUnit, skip: Skip<'_>) -> u64 {
    (0..unit.sample_count).filter(|&n| (skip.counts)(Id { index: unit.id.index + n, ..unit.id })).count() as u64
}

#[derive(Clone, Copy)]
struct UnitReader<'a> {
    source: &'a dyn Source,
    plan: &'a UnitOrder,
    layout: Layout,
    first: usize,
}

impl UnitReader<'_> {
    /// Starts the threads, all of them or as many as the system gives.
    fn start<'scope>(
        &'scope self,
        window: &'scope OrderedWindow<Vec<Entry>>,
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
    fn read_unit(&self, unit: ReadUnit, samples: &mut dyn SampleReader) -> Vec<Entry> {
        let mut entries = Vec::new();
        for n in 0..unit.sample_count {
            let id = Id { index: unit.id.index + n, ..unit.id };
            let content = match samples.next() {
                Ok(Some(SourceSample::Whole { sample, offset })) => EntryContent::Whole(sample, offset),
                Ok(Some(SourceSample::Long { .. })) => {
                    EntryContent::Long(LongSample::At(At { part: unit.part, position: unit.position, behind: n }))
                }
                Ok(None) => {
                    entries.extend(lost(unit, n, &self.fewer(unit, n)));
                    break;
                }
                Err(bad) if bad.reach == Reach::Rest => {
                    entries.extend(lost(unit, n, &bad));
                    break;
                }
                Err(bad) => EntryContent::Bad(bad),
            };
            entries.push(Entry { id, content });
        }
        entries
    }

    fn fewer(&self, unit: ReadUnit, found: u64) -> Bad {
        let place = RecordLocation { record: Some(unit.id.index + found), ..RecordLocation::default() };
        let why = format!(
            "{found} of {} samples are left of those that were there before: it has changed",
            unit.sample_count
        );
        Bad::new(&self.source.description().parts[unit.part].path, place, why, Reach::Rest)
    }
}

/// The entries of the unit from its `from`-th sample on, all lost for one reason.
fn lost(unit: ReadUnit, from: u64, bad: &Bad) -> Vec<Entry> {
    let entry = |n| Entry { id: Id { index: unit.id.index + n, ..unit.id }, content: EntryContent::Bad(bad.clone()) };
    (from..unit.sample_count).map(entry).collect()
}

struct UnitFeed<'a> {
    work: &'a UnitReader<'a>,
    window: &'a OrderedWindow<Vec<Entry>>,
    /// The unit that comes next out of the window; the start of a group whenever the queue is empty.
    next: usize,
    /// Entries still to skip.
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
