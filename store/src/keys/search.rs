//! From key to ordinal. spec.md: KEY-1 to KEY-7.
//!
//! A lookup reads four parts of the index, each far from the one before: the directory of buckets, the bucket's slots,
//! the directory of key groups, the key. [`KeyLookup`] takes these steps one at a time, so that many lookups can take
//! each step together (`find_batch`). A lookup mostly waits for memory. The steps of one lookup depend on each other;
//! those of different lookups do not, and the processor fetches for many of them at once.

use std::borrow::Cow;
use std::hint::black_box;
use std::ops::Range;

use grainstore_format::{KeyGeometry, KeyGroups, MAX_KEY_LEN, SLOT_LEN, SectionKind, hash48, to_usize};

use super::list::{KeyList, key_in_group};
use crate::index::Index;
use crate::index::section::View;
use crate::{Dataset, StoreError};

/// Bytes that a processor fetches at once.
const CACHE_LINE_LEN: usize = 64;
/// The largest number of bytes of a group that are fetched ahead: longer keys are better fetched one by one.
const FETCH_AHEAD_LEN: usize = 4096;

/// Lookups that take each step together. What they fetch (about 1 KiB each) stays in the nearest caches until it is
/// used.
const GROUP_LEN: usize = 64;

impl Dataset {
    /// The ordinal of the sample with this key; `None` if no sample of the opened generation has it, or the samples
    /// have no keys.
    ///
    /// # Errors
    /// If the index cannot be read, or what was read of it breaks a rule of the format.
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        if !self.may_have(key) {
            return Ok(None);
        }
        let keys = KeyIndex::of(self)?;
        let mut lookup = keys.begin(key);
        let bounds = keys.bucket(&lookup)?;
        lookup.slots = keys.slots(bounds)?;
        fetch_ahead(&lookup.slots);
        keys.finish(&mut lookup)
    }

    /// [`Dataset::find`] for each of `keys`, in their order.
    ///
    /// # Errors
    /// As [`Dataset::find`], for the first error met.
    pub fn find_batch(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<u64>>, StoreError> {
        let mut found = vec![None; keys.len()];
        if self.is_keyed() {
            let index = KeyIndex::of(self)?;
            for (keys, found) in keys.chunks(GROUP_LEN).zip(found.chunks_mut(GROUP_LEN)) {
                let keys = keys.iter().map(AsRef::as_ref).zip(found).filter(|(key, _)| self.may_have(key));
                find_together(&index, keys)?;
            }
        }
        Ok(found)
    }

    /// Whether a sample could have this key.
    fn may_have(&self, key: &[u8]) -> bool {
        self.is_keyed() && (1..=MAX_KEY_LEN).contains(&key.len())
    }
}

/// What all lookups in a dataset share.
struct KeyIndex<'a> {
    index: &'a Index,
    buckets: View<'a>,
    slots: View<'a>,
    list: KeyList<'a>,
    geometry: KeyGeometry,
    hash_seed: u64,
    /// Samples of the whole index: keys of later generations are in the buckets too.
    indexed_count: u64,
    /// Samples of the opened generation.
    sample_count: u64,
}

/// The lookup of one key.
struct KeyLookup<'a, 'k> {
    key: &'k [u8],
    bucket: u64,
    /// The key's slot if its ordinal were 0.
    slot: u64,
    slots: Cow<'a, [u8]>,
    /// The position of the next slot, and the smallest value that it may have.
    next: usize,
    least: u64,
}

impl<'a> KeyIndex<'a> {
    fn of(dataset: &'a Dataset) -> Result<Self, StoreError> {
        let index = &dataset.0.index;
        Ok(Self {
            index,
            buckets: index.view(SectionKind::Buckets)?,
            slots: index.view(SectionKind::Slots)?,
            list: KeyList::of(index)?,
            geometry: KeyGeometry::new(index.sample_count()),
            hash_seed: dataset.geometry().hash_seed,
            indexed_count: index.sample_count(),
            sample_count: dataset.sample_count(),
        })
    }

    /// Starts a lookup of `key`. Its slots have not been read yet.
    #[inline]
    fn begin<'k>(&self, key: &'k [u8]) -> KeyLookup<'a, 'k> {
        let hash = hash48(key, self.hash_seed);
        KeyLookup {
            key,
            bucket: self.geometry.bucket(hash),
            slot: self.geometry.slot(hash, 0),
            slots: Cow::Borrowed(&[]),
            next: 0,
            least: 0,
        }
    }

    /// The positions of the slots of the key's bucket. spec.md: KEY-5.
    #[inline]
    fn bucket(&self, lookup: &KeyLookup<'_, '_>) -> Result<Range<u64>, StoreError> {
        let bucket = lookup.bucket;
        let (from, to) = self.buckets.start_and_end(bucket)?;
        if from > to || to > self.indexed_count {
            return Err(self.index.damaged("buckets", format!("bucket {bucket} has the slots {from}..{to}")));
        }
        Ok(from..to)
    }

    /// The bytes of slots.
    #[inline]
    fn slots(&self, positions: Range<u64>) -> Result<Cow<'a, [u8]>, StoreError> {
        self.slots.read(positions.start * SLOT_LEN as u64..positions.end * SLOT_LEN as u64)
    }

    /// The sample of the next slot with the key's hash.
    #[inline]
    fn next_ordinal(&self, lookup: &mut KeyLookup<'_, '_>) -> Result<Option<u64>, StoreError> {
        let (slots, _) = lookup.slots.as_chunks::<SLOT_LEN>();
        let mut least = lookup.least;
        for (position, slot) in slots.iter().enumerate().skip(lookup.next) {
            let slot = KeyGeometry::decode_slot(slot);
            let ordinal = self.geometry.ordinal(slot);
            if slot < least || ordinal >= self.indexed_count {
                let what = format!("bucket {} has an invalid slot", lookup.bucket);
                return Err(self.index.damaged("slots", what));
            }
            least = slot + 1;
            if slot - ordinal == lookup.slot {
                lookup.next = position + 1;
                lookup.least = least;
                return Ok(Some(ordinal));
            }
        }
        lookup.next = slots.len();
        Ok(None)
    }

    /// The group of 64 keys that the key of `ordinal` is in.
    #[inline]
    fn group(&self, ordinal: u64) -> Result<Cow<'a, [u8]>, StoreError> {
        self.list.group(self.list.bounds(ordinal)?)
    }

    /// Whether sample `ordinal`, whose key is in `group`, has the key, not only its hash. spec.md: KEY-6.
    #[inline]
    fn has_key(&self, lookup: &KeyLookup<'_, '_>, ordinal: u64, group: &[u8]) -> Result<bool, StoreError> {
        Ok(key_in_group(self.index, group, ordinal)? == lookup.key)
    }

    /// The ordinal, unless its sample belongs to a later generation.
    #[inline]
    fn answer(&self, ordinal: u64) -> Option<u64> {
        Some(ordinal).filter(|&ordinal| ordinal < self.sample_count)
    }

    /// Checks slots until one leads to the key, or none is left.
    fn finish(&self, lookup: &mut KeyLookup<'_, '_>) -> Result<Option<u64>, StoreError> {
        while let Some(ordinal) = self.next_ordinal(lookup)? {
            let group = self.group(ordinal)?;
            fetch_ahead(up_to_key(&group, ordinal));
            if self.has_key(lookup, ordinal, &group)? {
                return Ok(self.answer(ordinal));
            }
        }
        Ok(None)
    }
}

/// Looks up a few keys, and stores each answer. Each loop takes one step of all lookups; no lookup depends on another.
fn find_together<'k>(
    index: &KeyIndex<'_>,
    keys: impl Iterator<Item = (&'k [u8], &'k mut Option<u64>)>,
) -> Result<(), StoreError> {
    let (mut lookups, answers): (Vec<KeyLookup<'_, '_>>, Vec<&mut Option<u64>>) =
        keys.map(|(key, answer)| (index.begin(key), answer)).unzip();
    let buckets = each(&lookups, |lookup| index.bucket(lookup))?;
    for (lookup, bucket) in lookups.iter_mut().zip(buckets) {
        lookup.slots = index.slots(bucket)?;
    }
    for lookup in &lookups {
        fetch_ahead(&lookup.slots);
    }
    let ordinals = each(&mut lookups, |lookup| index.next_ordinal(lookup))?;
    let candidates = each(ordinals, |ordinal| match ordinal {
        Some(ordinal) => Ok(Some((ordinal, index.group(ordinal)?))),
        None => Ok(None),
    })?;
    for (ordinal, group) in candidates.iter().flatten() {
        fetch_ahead(up_to_key(group, *ordinal));
    }
    for ((lookup, answer), candidate) in lookups.iter_mut().zip(answers).zip(&candidates) {
        let Some((ordinal, group)) = candidate else { continue };
        let ordinal = *ordinal;
        let has_key = index.has_key(lookup, ordinal, group)?;
        // Another key with this hash is rare enough to be handled one by one.
        *answer = if has_key { index.answer(ordinal) } else { index.finish(lookup)? };
    }
    Ok(())
}

/// `step` of every item; the first error.
fn each<I, O>(
    items: impl IntoIterator<Item = I>,
    step: impl FnMut(I) -> Result<O, StoreError>,
) -> Result<Vec<O>, StoreError> {
    items.into_iter().map(step).collect()
}

/// About the bytes of a group up to the end of the key of `ordinal`: keys have similar lengths.
#[inline]
fn up_to_key(group: &[u8], ordinal: u64) -> &[u8] {
    let position = ordinal % KeyGroups::GROUP_LEN;
    let end = to_usize(group.len() as u64 * (position + 1) / KeyGroups::GROUP_LEN);
    group.split_at(end).0
}

/// Reads a byte of each cache line, so that the processor fetches all of them at the same time. Later reads, each of
/// which depends on the one before, would fetch them one after the other.
#[inline]
fn fetch_ahead(bytes: &[u8]) {
    for byte in bytes.iter().take(FETCH_AHEAD_LEN).step_by(CACHE_LINE_LEN) {
        black_box(*byte);
    }
}
