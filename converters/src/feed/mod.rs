//! Reads the samples of a source in the order in which they are stored, ahead and with many threads.
//!
//! ```text
//! random access:   blocks -> units, in order or permuted -> threads -> ordered queue -> (groups, shuffled) -> entries
//! sequential:      parts, in order or permuted -> a thread each -> (sixteen in turn -> shuffling window) -> entries
//! ```
//!
//! The entries depend only on the source, the order and the seed, never on threads or time. The constants that bound
//! memory have comments with the bounds.

mod order;
mod part_stream;
mod random_access;
mod sequential;
mod warm;

use std::io::Read;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use grainstore_sources::{Bad, Layout, Reach, RecordLocation, SampleReader, Source, SourceSample};
use grainstore_writer::{Sample, StreamedSample};

use crate::{ConvertError, Events, Order};

pub(crate) use order::PackingOrder;

/// Default number of threads that read. They wait for the device most of the time, so their number does not depend on
/// the number of cores.
const READERS: usize = 16;
/// How long to wait for a sample before the caller is asked again whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// A sample's position in its source. Ids are sorted in the order of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) part: usize,
    /// Index in the part, counting bad samples.
    pub(crate) index: u64,
}

/// A sample, or why there is none.
pub(crate) struct Entry {
    pub(crate) id: Id,
    pub(crate) content: EntryContent,
}

pub(crate) enum EntryContent {
    /// A sample, and the offset of its payload in the part's file for [`Layout::InPlace`].
    Whole(Sample, u64),
    Long(LongSample),
    /// Not to be stored.
    LeftOut,
    Bad(Bad),
}

impl EntryContent {
    /// Whether it is not stored; an interrupted conversion notes the places of such entries.
    pub(crate) fn is_unstored(&self) -> bool {
        matches!(self, Self::LeftOut | Self::Bad(_))
    }
}

/// A sample that is not held in memory.
pub(crate) enum LongSample {
    /// To be opened again at this location.
    At(At),
    /// Being streamed; the payload must be read before the part continues.
    Streaming { sample: StreamedSample, offset: u64, payload: Box<dyn Read + Send> },
}

/// The location of a long sample: a position to open, and the number of samples to skip from there.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) part: usize,
    pub(crate) position: u64,
    pub(crate) behind: u64,
}

impl At {
    /// Opens the sample: the sample, the offset of its payload in the part's file, and a reader of its bytes.
    pub(crate) fn reopen<'a>(
        self,
        source: &'a dyn Source,
        layout: Layout,
    ) -> Result<(StreamedSample, u64, Box<dyn SampleReader + 'a>), Bad> {
        let mut samples = source.open(self.part, self.position, layout)?;
        for _ in 0..self.behind {
            // An error in a neighbour is reported with that neighbour.
            match samples.next() {
                Err(bad) if bad.reach == Reach::Rest => return Err(bad),
                _ => {}
            }
        }
        match samples.next()? {
            Some(SourceSample::Long { sample, offset }) => Ok((sample, offset, samples)),
            _ => {
                let why = "a sample of more than 64 MiB was here before: it has changed";
                Err(Bad::new(
                    &source.description().parts[self.part].path,
                    RecordLocation::default(),
                    why,
                    Reach::Sample,
                ))
            }
        }
    }
}

/// Returns entries in order.
pub(crate) trait Feed {
    /// The next one; `None` at the end.
    ///
    /// # Errors
    /// Where `events` wants to stop, or threads cannot be started. A bad sample is an entry.
    fn next(&mut self, events: &dyn Events) -> Result<Option<Entry>, ConvertError>;
}

/// How well the samples are mixed, for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mixing {
    /// In the order of the source.
    None,
    /// Every order was equally likely.
    Full,
    /// Blocks of neighbours in random order, the samples of about 128 of them shuffled together.
    Blocks,
    /// Parts in random order, sixteen taken in turn, shuffled within a window of this many bytes: the source can only
    /// be read from its start to its end.
    Window(u64),
}

impl PackingOrder {
    /// Calls `consume` with a feed of the entries, without those of `skip`, which are not even read where the source
    /// has random access.
    pub(crate) fn feed<R>(
        &self,
        source: &dyn Source,
        how: How,
        skip: Skip<'_>,
        consume: impl FnOnce(&mut dyn Feed) -> Result<R, ConvertError>,
    ) -> Result<R, ConvertError> {
        match self {
            Self::Units(plan) => random_access::feed(source, plan, how, skip, consume),
            Self::Streams(plan) => sequential::feed(source, plan, how, skip, consume),
        }
    }
}

/// How samples are read.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) layout: Layout,
    readers: Option<NonZeroUsize>,
}

impl How {
    /// With `jobs` threads, or the default number.
    pub(crate) fn new(layout: Layout, jobs: Option<NonZeroUsize>) -> Self {
        Self { layout, readers: jobs }
    }

    /// The number of threads that read from a device.
    fn readers(self) -> usize {
        self.readers.map_or(READERS, NonZeroUsize::get)
    }

    /// The number of threads that read from the page cache. They do not wait, so more than two for each core would only
    /// take turns, each with memory of its own.
    fn cached_readers(self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.readers.map_or_else(|| READERS.min(2 * cores()), NonZeroUsize::get)
    }
}

/// Entries that an interrupted conversion has already packed or skipped.
#[derive(Clone, Copy)]
pub(crate) struct Skip<'a> {
    pub(crate) count: u64,
    /// Which of these entries were bad or left out, as indexes among them, ascending. A stream that is read again must
    /// be so at the same indexes, otherwise the entries after them would differ.
    pub(crate) unstored_places: &'a [u64],
    /// Whether an entry counts: duplicates that are skipped do not.
    pub(crate) counts: &'a dyn Fn(Id) -> bool,
}

impl Skip<'_> {
    pub(crate) const NOTHING: Self = Skip { count: 0, unstored_places: &[], counts: &|_| true };
}

/// Approximate bytes of memory that a sample takes.
pub(crate) fn memory_len(sample: &Sample) -> u64 {
    let lists = size_of_val(sample.attributes.as_slice()) + size_of_val(sample.fields.as_slice());
    (size_of::<Entry>() + sample.key.len() + sample.payload.len() + lists) as u64
}

pub(crate) fn check(events: &dyn Events) -> Result<(), ConvertError> {
    if events.cancelled() { Err(ConvertError::Interrupted) } else { Ok(()) }
}

/// The seed of a shuffled order.
pub(crate) fn seed_of(order: Order) -> Option<u64> {
    match order {
        Order::Shuffled { seed } => Some(seed),
        Order::Source => None,
    }
}
