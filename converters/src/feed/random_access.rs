//! The feed of a source with random access: threads read units ahead, and the consumer takes them in order.

use std::collections::VecDeque;
use std::ops::Range;
use std::thread;

use super::order::{ReadUnit, UnitOrder};
use super::{At, Entry, EntryContent, Feed, How, Id, LongSample, PATIENCE, Skip, check};
use crate::ordered_queue::{Next, OrderedQueue, Producer, QueueBounds};
use crate::{ConvertError, Events};
use grainstore_sources::{Bad, Layout, Reach, RecordLocation, SampleReader, Source, SourceSample};

/// Bytes of units read ahead, as many as are shuffled together: 128 MiB, and one unit more.
const AHEAD_BYTES: u64 = 128 << 20;
/// Bytes of a unit of many samples, about.
const UNIT_LEN: u64 = 2 << 20;
/// Units read ahead; this bounds empty units too.
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
    let queue = OrderedQueue::new(QueueBounds { count, positions_max: AHEAD_UNITS, bytes_max: AHEAD_BYTES });
    let work = UnitReader { source, plan, layout: how.layout, first: start.unit };
    thread::scope(|scope| {
        let readers = if plan.is_cached { how.cached_readers() } else { how.readers() };
        let started = work.start(&queue, readers.min(count), scope);
        let mut feed =
            UnitFeed { work: &work, queue: &queue, next: start.unit, drop: start.drop, skip, ready: VecDeque::new() };
        let result = started.and_then(|()| consume(&mut feed));
        // Wakes threads that wait for room; the scope waits for them to end.
        queue.close();
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
    /// Skips complete groups without reading them.
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
    /// Starts the threads: all of them, or as many as the system allows.
    fn start<'scope>(
        &'scope self,
        queue: &'scope OrderedQueue<Vec<Entry>>,
        readers: usize,
        scope: &'scope thread::Scope<'scope, '_>,
    ) -> Result<(), ConvertError> {
        for started in 0..readers {
            let producer = queue.producer();
            let thread = thread::Builder::new().name(format!("read-{started}"));
            match thread.spawn_scoped(scope, move || self.read_ahead(&producer)) {
                Err(error) if started == 0 => return Err(ConvertError::Threads(error.to_string())),
                Err(_) => return Ok(()),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// The work of one thread: reads units until there is no position left.
    fn read_ahead(&self, producer: &Producer<'_, Vec<Entry>>) {
        while let Some(position) = producer.begin() {
            let unit = self.plan.unit(self.first + position);
            let mut opened = self.source.open(unit.part, unit.position, self.layout);
            // A long sample, or one that failed to open, takes no memory here.
            let len = unit.memory_len().or_else(|| opened.as_mut().ok()?.ahead_len()).unwrap_or(0);
            if !producer.reserve(position, len) {
                return;
            }
            grow_heap(len);
            let entries = match opened {
                Ok(mut samples) => self.read_unit(unit, samples.as_mut()),
                Err(bad) => lost(unit, 0, &bad),
            };
            producer.put(position, len, entries);
        }
    }

    /// Reads a unit. Returns as many entries as it has samples, in any case.
    fn read_unit(&self, unit: ReadUnit, samples: &mut dyn SampleReader) -> Vec<Entry> {
        let mut entries = Vec::new();
        for n in 0..unit.sample_count {
            let id = Id { index: unit.id.index + n, ..unit.id };
            let content = match samples.next() {
                Ok(Some(SourceSample::Whole { sample, offset })) => EntryContent::Whole(sample, offset),
                Ok(Some(SourceSample::Long { .. })) => {
                    EntryContent::Long(LongSample::At(At { part: unit.part, position: unit.position, behind: n }))
                }
                Ok(Some(SourceSample::LeftOut)) => EntryContent::LeftOut,
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
        let location = RecordLocation { record: Some(unit.id.index + found), ..RecordLocation::default() };
        let why = format!("only {found} of {} samples are left: it has changed", unit.sample_count);
        Bad::new(&self.source.description().parts[unit.part].path, location, why, Reach::Rest)
    }
}

/// Lets the allocator get memory for a unit at once. Otherwise the heaps of glibc's threads grow by a page, with a system
/// call, for each sample.
fn grow_heap(len: u64) {
    let mut room: Vec<u8> = Vec::new();
    // Where there is no memory, reading the samples reports it.
    if room.try_reserve_exact(grainstore_format::to_usize(len.min(UNIT_LEN))).is_ok() {
        std::hint::black_box(&mut room);
    }
}

/// The entries of a unit from its `from`-th sample on, all bad for the same reason.
fn lost(unit: ReadUnit, from: u64, bad: &Bad) -> Vec<Entry> {
    let entry = |n| Entry { id: Id { index: unit.id.index + n, ..unit.id }, content: EntryContent::Bad(bad.clone()) };
    (from..unit.sample_count).map(entry).collect()
}

struct UnitFeed<'a> {
    work: &'a UnitReader<'a>,
    queue: &'a OrderedQueue<Vec<Entry>>,
    /// The unit that comes next out of the queue; the start of a group whenever `ready` is empty.
    next: usize,
    /// Entries still to skip.
    drop: u64,
    skip: Skip<'a>,
    /// Entries of the current group.
    ready: VecDeque<Entry>,
}

impl UnitFeed<'_> {
    fn take_unit(&mut self, events: &dyn Events) -> Result<Vec<Entry>, ConvertError> {
        loop {
            match self.queue.next(PATIENCE) {
                Next::Item(entries) => {
                    self.next += 1;
                    return Ok(entries);
                }
                Next::NotYet => check(events)?,
                Next::End => return Err(ConvertError::Bug { what: "the threads that read have ended too early" }),
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
        self.ready.extend(entries);
        Ok(())
    }
}

impl Feed for UnitFeed<'_> {
    fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
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
