//! Reading a source before it is packed, in its order.

use std::io::{self, Read};
use std::num::NonZeroUsize;

use grainstore_sources::{Layout, Source};
use grainstore_writer::{Sample, StreamedSample};

use crate::feed::{EntryContent, Feed, How, Id, LongSample, PackingOrder, Skip, check};
use crate::{ConvertError, Events, Order, Progress};

pub(super) struct Pass<'a> {
    source: &'a dyn Source,
    plan: PackingOrder,
    jobs: Option<NonZeroUsize>,
    pub(super) events: &'a dyn Events,
}

/// A sample that was read. A long one is read further by the one who takes it, or not.
pub(super) enum Scanned<'a> {
    Whole(&'a Sample),
    Long(&'a StreamedSample, &'a mut dyn Read),
}

/// Called with a sample's id and the sample.
pub(super) type TakeSample<'a> = &'a mut dyn FnMut(Id, Scanned<'_>) -> Result<(), ConvertError>;

impl Scanned<'_> {
    pub(super) fn key(&self) -> &[u8] {
        match self {
            Self::Whole(sample) => &sample.key,
            Self::Long(sample, _) => &sample.key,
        }
    }
}

impl<'a> Pass<'a> {
    /// `what` is what is compared: keys, content.
    pub(super) fn new(
        source: &'a dyn Source,
        what: &str,
        jobs: Option<NonZeroUsize>,
        events: &'a dyn Events,
    ) -> Result<Self, ConvertError> {
        if source.description().is_once {
            let why = format!(
                "a stream is read once, and finding duplicate {what} before packing needs two readings: save it to a file"
            );
            return Err(ConvertError::Refused { path: source.description().first_path(), why: why.into() });
        }
        Ok(Self { source, plan: PackingOrder::of(source, Order::Source, events)?, jobs, events })
    }

    /// Another source, read in the same way.
    pub(super) fn of<'b>(&self, source: &'b dyn Source) -> Result<Pass<'b>, ConvertError>
    where
        'a: 'b,
    {
        let plan = PackingOrder::of(source, Order::Source, self.events)?;
        Ok(Pass { source, plan, jobs: self.jobs, events: self.events })
    }

    pub(super) fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// Calls `take` with all samples, in source order. Bad ones are left out; packing reports what is wrong with them.
    pub(super) fn for_each(&self, take: TakeSample<'_>) -> Result<(), ConvertError> {
        let mut progress = Progress::begin(self.source, self.plan.entry_count(self.source));
        self.plan.feed(self.source, How::new(Layout::Packed, self.jobs), Skip::NOTHING, |feed: &mut dyn Feed| {
            while let Some(entry) = feed.next(self.events)? {
                match entry.content {
                    EntryContent::Whole(sample, _) => {
                        progress.bytes += sample.payload.len() as u64;
                        take(entry.id, Scanned::Whole(&sample))?;
                    }
                    EntryContent::Long(long) => self.take_long(entry.id, long, take)?,
                    EntryContent::LeftOut | EntryContent::Bad(_) => {}
                }
                progress.samples += 1;
                self.events.on_scan(progress);
                check(self.events)?;
            }
            Ok(())
        })
    }

    fn take_long(&self, id: Id, long: LongSample, take: TakeSample<'_>) -> Result<(), ConvertError> {
        match long {
            LongSample::Streaming { sample, mut payload, .. } => {
                take(id, Scanned::Long(&sample, &mut payload))?;
                // The part continues only after the payload was read to its end. Packing reports an error in it.
                let _ = io::copy(&mut payload, &mut io::sink());
                Ok(())
            }
            LongSample::At(at) => match at.reopen(self.source, Layout::Packed) {
                Ok((sample, _, mut samples)) => take(id, Scanned::Long(&sample, samples.payload())),
                Err(_) => Ok(()),
            },
        }
    }
}
