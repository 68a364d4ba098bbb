//! Which samples are read together, and in which order: units of neighbours, or whole parts.
//!
//! A unit is a block of the source. In a shuffled order the units are permuted, and every permutation is equally
//! likely. Where units have several samples, consecutive units of the permutation form a group of 128 MiB, and the
//! samples of a group are shuffled together. So a stored chunk has samples from about a hundred units, while the source
//! is read in large pieces. Where every unit is one sample, the permutation is enough.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Duration;

use grainstore_sources::{Bad, Blocks, Source, SourceBlock, SourcePart};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::{Id, Mixing, check, seed_of, warm};
use crate::{ConvertError, Events, Order, Progress, random};

/// How often the caller is asked whether to stop during a scan of the source.
const SCAN_PATIENCE: Duration = Duration::from_millis(20);

/// Bytes of units whose samples are shuffled together. Twice as much is in memory: one group is collected while the
/// next is read ahead.
const GROUP_LEN: u64 = 128 << 20;

/// How a source is read.
pub(crate) enum PackingOrder {
    Units(UnitOrder),
    Streams(PartOrder),
}

/// Parts that are streamed, in this order.
pub(crate) struct PartOrder {
    pub(crate) parts: Vec<usize>,
    /// The seed of the shuffling window; `None` where nothing is shuffled.
    pub(crate) seed: Option<u64>,
}

/// Units in the order in which they are read.
pub(crate) struct UnitOrder {
    parts: Vec<PartUnits>,
    unit_count: usize,
    /// The permutation of the units; `None` where they are read in source order.
    order: Option<Vec<usize>>,
    grouped: Option<u64>,
    /// Whether samples come from the page cache, and nothing else is waited for.
    pub(crate) is_cached: bool,
}

/// The units of one part.
struct PartUnits {
    /// Number of units in the parts before.
    first: usize,
    blocks: Blocks,
    /// For each block, the number of samples before it in the part; empty where every unit is one sample.
    starts: Vec<u64>,
}

/// Samples that are read together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadUnit {
    pub(crate) part: usize,
    pub(crate) position: u64,
    /// The first sample.
    pub(crate) id: Id,
    pub(crate) sample_count: u64,
    /// Approximate length in bytes; `None` where it is known only when the unit is opened.
    pub(crate) len: Option<u64>,
}

/// Approximate bytes that a sample takes besides its payload.
const SAMPLE_LEN: u64 = 200;

impl ReadUnit {
    /// Approximate bytes of memory that its samples take.
    pub(crate) fn memory_len(&self) -> Option<u64> {
        self.len.map(|len| len.saturating_add(self.sample_count.saturating_mul(SAMPLE_LEN)))
    }
}

impl PackingOrder {
    /// Scans the source where the order needs its blocks.
    pub(crate) fn of(source: &dyn Source, order: Order, events: &dyn Events) -> Result<Self, ConvertError> {
        let count = source.description().parts.len();
        let streams = || {
            let parts = seed_of(order).map_or((0..count).collect(), |seed| random::permutation(count, seed));
            Ok(Self::Streams(PartOrder { parts, seed: seed_of(order) }))
        };
        if order == Order::Source && !source.description().is_listed {
            return streams();
        }
        let scanned = scan(source, events)?;
        scanned.map_or_else(streams, |(blocks, is_cached)| Ok(Self::Units(UnitOrder::new(blocks, order, is_cached))))
    }

    /// Number of entries, where it is known.
    pub(crate) fn entry_count(&self, source: &dyn Source) -> Option<u64> {
        match self {
            Self::Units(plan) => Some(plan.parts.iter().map(PartUnits::sample_count).sum()),
            Self::Streams(_) => source.description().parts.iter().map(|part| part.sample_count).sum(),
        }
    }

    /// How samples are mixed.
    pub(crate) fn mixing(&self) -> Mixing {
        match self {
            Self::Streams(PartOrder { seed: None, .. }) | Self::Units(UnitOrder { order: None, .. }) => Mixing::None,
            Self::Streams(_) => Mixing::Window(super::sequential::WINDOW_LEN),
            Self::Units(plan) if plan.grouped.is_some() && plan.group(0).end < plan.unit_count => Mixing::Blocks,
            Self::Units(_) => Mixing::Full,
        }
    }
}

/// The blocks of an unreadable part: one with one bad sample. Reading it reports the error.
fn unreadable() -> Option<Blocks> {
    Some(Blocks::Runs(vec![SourceBlock { position: 0, len: 0, sample_count: 1 }]))
}

/// The blocks of all parts, and whether their samples come from the page cache now; `None` where one can only be streamed.
fn scan(source: &dyn Source, events: &dyn Events) -> Result<Option<(Vec<Blocks>, bool)>, ConvertError> {
    let stop = AtomicBool::new(false);
    let seen_len = AtomicU64::new(0);
    let fits = warm::fits(source);
    let begun = Progress::begin(source, None);
    let parts = &source.description().parts;
    let files = Files::of(parts);
    let look = |part: usize| {
        if stop.load(Relaxed) {
            return Ok(None);
        }
        let blocks = thread::scope(|scope| {
            if fits && files.is_first_look(part) {
                // Without this thread it is only slower.
                let _ = thread::Builder::new().spawn_scoped(scope, || warm::warm(&parts[part].path, &stop));
            }
            source.blocks(part).or_else(|_| Ok(unreadable()))
        });
        seen_len.fetch_add(parts[part].len, Relaxed);
        blocks
    };
    let look_at_all = || (0..parts.len()).into_par_iter().map(look).collect::<Result<Option<Vec<_>>, Bad>>();
    thread::scope(|scope| {
        let looking = scope.spawn(look_at_all);
        while !looking.is_finished() {
            thread::park_timeout(SCAN_PATIENCE);
            stop.store(events.cancelled(), Relaxed);
            events.on_scan(Progress { bytes: seen_len.load(Relaxed), ..begun });
        }
        let blocks =
            looking.join().map_err(|_| ConvertError::Bug { what: "a thread that scans files has panicked" })?;
        check(events)?;
        let is_cached = fits && !source.description().waits && warm::is_cached(source);
        Ok(blocks?.map(|blocks| (blocks, is_cached)))
    })
}

/// The files of parts, one after the other, and which of them have been looked at.
struct Files {
    /// By part, the number of its file.
    of_part: Vec<usize>,
    is_seen: Vec<AtomicBool>,
}

impl Files {
    fn of(parts: &[SourcePart]) -> Self {
        let mut count = 0;
        let mut of_part = Vec::with_capacity(parts.len());
        for (part, one) in parts.iter().enumerate() {
            // The parts of a file follow each other.
            count += usize::from(part == 0 || parts[part - 1].path != one.path);
            of_part.push(count - 1);
        }
        Self { of_part, is_seen: (0..count).map(|_| AtomicBool::new(false)).collect() }
    }

    /// Whether no part of this part's file was asked about before.
    fn is_first_look(&self, part: usize) -> bool {
        !self.is_seen[self.of_part[part]].swap(true, Relaxed)
    }
}

impl UnitOrder {
    fn new(blocks: Vec<Blocks>, order: Order, is_cached: bool) -> Self {
        let mut unit_count = 0;
        let parts: Vec<PartUnits> = blocks.into_iter().map(|blocks| PartUnits::new(&mut unit_count, blocks)).collect();
        let seed = seed_of(order);
        let grouped = seed.filter(|_| parts.iter().any(PartUnits::has_runs));
        let order = seed.map(|seed| random::permutation(unit_count, seed));
        Self { parts, unit_count, order, grouped, is_cached }
    }

    pub(crate) fn unit_count(&self) -> usize {
        self.unit_count
    }

    /// Unit `number` of the order.
    pub(crate) fn unit(&self, number: usize) -> ReadUnit {
        let number = self.order.as_ref().map_or(number, |order| order[number]);
        let part = self.parts.partition_point(|part| part.first <= number) - 1;
        self.parts[part].unit(part, number)
    }

    /// The units from `start` on whose samples are shuffled together; one unit where nothing is shuffled.
    pub(crate) fn group(&self, start: usize) -> Range<usize> {
        if self.grouped.is_none() {
            return start..start + 1;
        }
        let mut end = start;
        let mut len = 0;
        while end < self.unit_count && (end == start || len < GROUP_LEN) {
            // A sample whose length is known only when it is opened does not count.
            len += self.unit(end).memory_len().unwrap_or(0);
            end += 1;
        }
        start..end
    }

    /// Shuffles the entries of the group that begins with unit `start`.
    pub(crate) fn shuffle<T>(&self, start: usize, entries: &mut [T]) {
        if let Some(seed) = self.grouped {
            random::shuffle(entries, seed, start as u64);
        }
    }
}

/// For each block, the number of samples before it.
fn starts_of(runs: &[SourceBlock]) -> Vec<u64> {
    let before = |sum: &mut u64, run: &SourceBlock| {
        let start = *sum;
        *sum += u64::from(run.sample_count);
        Some(start)
    };
    runs.iter().scan(0, before).collect()
}

impl PartUnits {
    fn new(unit_count: &mut usize, blocks: Blocks) -> Self {
        let first = *unit_count;
        let starts = match &blocks {
            Blocks::Each(_) => Vec::new(),
            Blocks::Runs(runs) => starts_of(runs),
        };
        *unit_count += match &blocks {
            Blocks::Each(count) => grainstore_format::to_usize(*count),
            Blocks::Runs(runs) => runs.len(),
        };
        Self { first, blocks, starts }
    }

    fn has_runs(&self) -> bool {
        matches!(&self.blocks, Blocks::Runs(runs) if runs.iter().any(|run| run.sample_count > 1))
    }

    fn sample_count(&self) -> u64 {
        match &self.blocks {
            Blocks::Each(count) => *count,
            Blocks::Runs(runs) => runs.iter().map(|run| u64::from(run.sample_count)).sum(),
        }
    }

    fn unit(&self, part: usize, number: usize) -> ReadUnit {
        let at = number - self.first;
        match &self.blocks {
            Blocks::Each(_) => {
                let index = at as u64;
                ReadUnit { part, position: index, id: Id { part, index }, sample_count: 1, len: None }
            }
            Blocks::Runs(runs) => {
                let SourceBlock { position, len, sample_count } = runs[at];
                let id = Id { part, index: self.starts[at] };
                ReadUnit { part, position, id, sample_count: sample_count.into(), len: Some(len) }
            }
        }
    }
}
