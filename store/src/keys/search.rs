//! From key to ordinal. spec.md: KEY-1 to KEY-7.
//!
//! Four places of the index are looked at, each far from the one before: the directory of buckets, the bucket's
//! slots, the directory of key groups, the key. [`KeyLookup`] takes these steps one at a time, so that many searches
//! can take each step together (`find_batch`).

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
/// More of a group than this is not fetched ahead: keys that long are better fetched one by one.
const AHEAD_LEN: usize = 4096;

/// Searches that go together. What they fetch (about 1 KiB each) stays in the nearest caches until it is used.
const TOGETHER: usize = 64;

impl Dataset {
    /// The ordinal of the sample with this key; none where no sample of the opened generation has it, or none has
    /// a key at all.
    ///
    /// # Errors
    /// Where the index cannot be read, or what was read of it breaks a rule of the format.
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        if !self.may_have(key) {
            return Ok(None);
        }
        let keys = KeyIndex::of(self)?;
        let mut search = keys.begin(key);
        let bounds = keys.bucket(&search)?;
        search.slots = keys.slots(bounds)?;
        fetch_ahead(&search.slots);
        keys.go_on(&mut search)
    }

    /// [`Dataset::find`] for each of `keys`, in their order.
    ///
    /// # Errors
    /// As [`Dataset::find`], for the first error met.
    pub fn find_batch(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<u64>>, StoreError> {
        let mut found = vec![None; keys.len()];
        if self.is_keyed() {
            let index = KeyIndex::of(self)?;
            for (keys, found) in keys.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
                let keys = keys.iter().map(AsRef::as_ref).zip(found).filter(|(key, _)| self.may_have(key));
                find_together(&index, keys)?;
            }
        }
        Ok(found)
    }

    /// Whether a sample could have this key at all.
    fn may_have(&self, key: &[u8]) -> bool {
        self.is_keyed() && (1..=MAX_KEY_LEN).contains(&key.len())
    }
}

/// What all searches in a dataset have in common.
struct KeyIndex<'a> {
    index: &'a Index,
    buckets: View<'a>,
    slots: View<'a>,
    list: KeyList<'a>,
    geometry: KeyGeometry,
    hash_seed: u64,
    /// Of the whole index: later generations' keys are in the buckets too.
    indexed_count: u64,
    /// Of the opened generation.
    sample_count: u64,
}

/// A key on its way to its ordinal.
struct KeyLookup<'a, 'k> {
    key: &'k [u8],
    bucket: u64,
    /// The key's slot, were its ordinal 0.
    slot: u64,
    slots: Cow<'a, [u8]>,
    /// The slot to look at next, and the least value that it may have.
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

    /// Starts a search for `key`. Its slots are not there yet.
    #[inline]
    fn begin<'k>(&self, key: &'k [u8]) -> KeyLookup<'a, 'k> {
        let hash = hash48(key, self.hash_seed);
        let (bucket, slot) = (self.geometry.bucket(hash), self.geometry.slot(hash, 0));
        KeyLookup { key, bucket, slot, slots: Cow::Borrowed(&[]), next: 0, least: 0 }
    }

    /// Where the slots of the key's bucket are. spec.md: KEY-5.
    #[inline]
    fn bucket(&self, search: &KeyLookup<'_, '_>) -> Result<Range<u64>, StoreError> {
        let bucket = search.bucket;
        let (from, to) = self.buckets.start_and_end(bucket)?;
        if from > to || to > self.indexed_count {
            return Err(self.index.damaged("buckets", format!("bucket {bucket} has the slots {from}..{to}")));
        }
        Ok(from..to)
    }

    /// These slots.
    #[inline]
    fn slots(&self, places: Range<u64>) -> Result<Cow<'a, [u8]>, StoreError> {
        self.slots.read(places.start * SLOT_LEN as u64..places.end * SLOT_LEN as u64)
    }

    /// The sample of the next slot with the key's hash.
    #[inline]
    fn next_ordinal(&self, search: &mut KeyLookup<'_, '_>) -> Result<Option<u64>, StoreError> {
        let (slots, _) = search.slots.as_chunks::<SLOT_LEN>();
        let (first, mut least) = (search.next, search.least);
        for (place, slot) in slots.iter().enumerate().skip(first) {
            let slot = KeyGeometry::decode_slot(slot);
            let ordinal = self.geometry.ordinal(slot);
            if slot < least || ordinal >= self.indexed_count {
                let what = format!("bucket {} has a slot that no writer writes", search.bucket);
                return Err(self.index.damaged("slots", what));
            }
            least = slot + 1;
            if slot - ordinal == search.slot {
                (search.next, search.least) = (place + 1, least);
                return Ok(Some(ordinal));
            }
        }
        search.next = slots.len();
        Ok(None)
    }

    /// The group of 64 keys that the key of `ordinal` is in.
    #[inline]
    fn group(&self, ordinal: u64) -> Result<Cow<'a, [u8]>, StoreError> {
        self.list.group(self.list.bounds(ordinal)?)
    }

    /// Whether `ordinal`, whose key is in `group`, has the key itself, not only its hash. spec.md: KEY-6.
    #[inline]
    fn is_it(&self, search: &KeyLookup<'_, '_>, ordinal: u64, group: &[u8]) -> Result<bool, StoreError> {
        Ok(key_in_group(self.index, group, ordinal)? == search.key)
    }

    /// The ordinal to answer with: a later generation's sample is not there.
    #[inline]
    fn answer(&self, ordinal: u64) -> Option<u64> {
        Some(ordinal).filter(|&ordinal| ordinal < self.sample_count)
    }

    /// Looks at slots until one leads to the key, or there is none.
    fn go_on(&self, search: &mut KeyLookup<'_, '_>) -> Result<Option<u64>, StoreError> {
        while let Some(ordinal) = self.next_ordinal(search)? {
            let group = self.group(ordinal)?;
            fetch_ahead(up_to_key(&group, ordinal));
            if self.is_it(search, ordinal, &group)? {
                return Ok(self.answer(ordinal));
            }
        }
        Ok(None)
    }
}

/// Looks for a few keys, and puts each answer into its place. Each loop takes one step of all searches; nothing in
/// it depends on the search before.
fn find_together<'k>(
    index: &KeyIndex<'_>,
    keys: impl Iterator<Item = (&'k [u8], &'k mut Option<u64>)>,
) -> Result<(), StoreError> {
    let (mut searches, places): (Vec<KeyLookup<'_, '_>>, Vec<&mut Option<u64>>) =
        keys.map(|(key, place)| (index.begin(key), place)).unzip();
    let buckets = each(&searches, |search| index.bucket(search))?;
    for (search, bucket) in searches.iter_mut().zip(buckets) {
        search.slots = index.slots(bucket)?;
    }
    searches.iter().for_each(|search| fetch_ahead(&search.slots));
    let ordinals = each(&mut searches, |search| index.next_ordinal(search))?;
    let groups = each(&ordinals, |ordinal| ordinal.map_or(Ok(Cow::Borrowed(&[][..])), |ordinal| index.group(ordinal)))?;
    for (group, ordinal) in groups.iter().zip(&ordinals) {
        fetch_ahead(up_to_key(group, ordinal.unwrap_or_default()));
    }
    for (((search, place), ordinal), group) in searches.iter_mut().zip(places).zip(ordinals).zip(&groups) {
        let Some(ordinal) = ordinal else { continue };
        let is_it = index.is_it(search, ordinal, group)?;
        // Another key with this hash is rare enough to go on alone.
        *place = if is_it { index.answer(ordinal) } else { index.go_on(search)? };
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

/// The bytes of a group that are walked over to reach the key of `ordinal`, about: keys have about the same length.
#[inline]
fn up_to_key(group: &[u8], ordinal: u64) -> &[u8] {
    let place = ordinal % KeyGroups::GROUP_LEN;
    let end = to_usize(group.len() as u64 * (place + 1) / KeyGroups::GROUP_LEN);
    group.get(..end).unwrap_or_default()
}

/// Looks at a byte of each cache line, so that the processor fetches all of them at the same time. What is looked at
/// one after the other is fetched one after the other, where each place depends on the one before.
#[inline]
fn fetch_ahead(bytes: &[u8]) {
    let bytes = bytes.get(..bytes.len().min(AHEAD_LEN)).unwrap_or_default();
    for byte in bytes.iter().step_by(CACHE_LINE_LEN) {
        black_box(*byte);
    }
}
