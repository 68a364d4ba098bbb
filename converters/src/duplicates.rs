//! Finds the samples to skip because another sample has the same key.
//!
//! Before the source is packed it is read once for its keys: a hash and an id for each sample, 24 bytes. If these would
//! take more than 384 MiB, the source is read once for each half of the hashes, or each quarter, and so on. Equal
//! hashes do not prove equal keys, so where there are any, the source is read once more to compare the keys themselves.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;

use grainstore_sources::{Layout, Source};
use xxhash_rust::xxh64::xxh64;

use crate::feed::{EntryContent, Feed, How, Id, LongSample, PackingOrder, Skip};
use crate::{ConvertError, Events, OnDuplicate, Order, Progress};

/// The largest number of hashes in memory at once.
const HELD_MAX: usize = 16 << 20;

/// The samples to skip, in source order.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    ids: Vec<Id>,
}

/// Whether a key is taken already, for samples that are added to a dataset.
pub(crate) type IsTaken<'a> = &'a dyn Fn(&[u8]) -> Result<bool, ConvertError>;

impl Drops {
    /// Finds the samples to skip.
    pub(crate) fn find(
        source: &dyn Source,
        on_duplicate: OnDuplicate,
        jobs: Option<NonZeroUsize>,
        is_taken: Option<IsTaken<'_>>,
        events: &dyn Events,
    ) -> Result<Self, ConvertError> {
        let needless = source.description().has_distinct_keys && is_taken.is_none();
        if on_duplicate == OnDuplicate::Error || !source.description().is_keyed || needless {
            return Ok(Self::default());
        }
        if source.description().is_once {
            let why = "a stream is read once, and finding duplicate keys before packing needs two readings: save it to a file";
            return Err(ConvertError::Refused { path: source.description().parts[0].path.clone(), why: why.into() });
        }
        let pass = Pass { source, plan: PackingOrder::of(source, Order::Source, events)?, jobs, events };
        let mut ids = Vec::new();
        if let Some(is_taken) = is_taken {
            pass.for_each_key(&mut |id, key| {
                ids.extend(is_taken(key)?.then_some(id));
                Ok(())
            })?;
        }
        let alike = if source.description().has_distinct_keys { HashSet::new() } else { pass.alike()? };
        if !alike.is_empty() {
            ids.extend(pass.dropped(&alike, on_duplicate)?);
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(Self { ids })
    }

    pub(crate) fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    pub(crate) fn contains(&self, id: Id) -> bool {
        self.ids.binary_search(&id).is_ok()
    }
}

/// Called with a sample's id and key.
type TakeKey<'a> = &'a mut dyn FnMut(Id, &[u8]) -> Result<(), ConvertError>;

struct Pass<'a> {
    source: &'a dyn Source,
    plan: PackingOrder,
    jobs: Option<NonZeroUsize>,
    events: &'a dyn Events,
}

impl Pass<'_> {
    /// The samples whose hash another sample has too.
    fn alike(&self) -> Result<HashSet<Id>, ConvertError> {
        let mut round = 0;
        let mut rounds = 1_u64;
        let mut alike = HashSet::new();
        while round < rounds {
            let mut held: Vec<(u64, Id)> = Vec::new();
            let mut held_max = HELD_MAX;
            self.for_each_key(&mut |id, key| {
                let hash = xxh64(key, 0);
                if hash % rounds == round {
                    held.push((hash, id));
                }
                if held.len() > held_max {
                    rounds *= 2;
                    held.retain(|(hash, _)| hash % rounds == round);
                    // If all keys are the same, no round holds fewer.
                    held_max = HELD_MAX.max(2 * held.len());
                }
                Ok(())
            })?;
            held.sort_unstable();
            for run in held.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
                alike.extend(run.iter().map(|&(_, id)| id));
            }
            round += 1;
        }
        Ok(alike)
    }

    /// The samples of `alike` to skip: those with the key of another sample, except the one to keep.
    fn dropped(&self, alike: &HashSet<Id>, on_duplicate: OnDuplicate) -> Result<Vec<Id>, ConvertError> {
        let mut kept: HashMap<Vec<u8>, Id> = HashMap::new();
        let mut dropped = Vec::new();
        self.for_each_key(&mut |id, key| {
            if alike.contains(&id) {
                match kept.get_mut(key) {
                    None => drop(kept.insert(key.to_vec(), id)),
                    Some(last) if on_duplicate == OnDuplicate::Last => dropped.push(std::mem::replace(last, id)),
                    Some(_) => dropped.push(id),
                }
            }
            Ok(())
        })?;
        Ok(dropped)
    }

    /// Calls `take` with all keys, in source order. Bad samples have none; packing reports what is wrong with them.
    fn for_each_key(&self, take: TakeKey<'_>) -> Result<(), ConvertError> {
        let mut progress = Progress::begin(self.source, self.plan.entry_count(self.source));
        self.plan.feed(self.source, How::new(Layout::Packed, self.jobs), Skip::NOTHING, |feed: &mut dyn Feed| {
            while let Some(entry) = feed.next(self.events)? {
                match entry.content {
                    EntryContent::Whole(sample, _) => {
                        progress.bytes += sample.payload.len() as u64;
                        take(entry.id, &sample.key)?;
                    }
                    EntryContent::Long(long) => {
                        if let Some(key) = self.key_of(long) {
                            take(entry.id, &key)?;
                        }
                    }
                    EntryContent::LeftOut | EntryContent::Bad(_) => {}
                }
                progress.samples += 1;
                self.events.on_scan(progress);
                crate::feed::check(self.events)?;
            }
            Ok(())
        })
    }

    fn key_of(&self, long: LongSample) -> Option<Vec<u8>> {
        match long {
            LongSample::Streaming { sample, mut payload, .. } => {
                // The part continues only after the payload was read to its end. Packing reports an error in it.
                let _ = std::io::copy(&mut payload, &mut std::io::sink());
                Some(sample.key)
            }
            LongSample::At(at) => at.reopen(self.source, Layout::Packed).ok().map(|(sample, ..)| sample.key),
        }
    }
}
