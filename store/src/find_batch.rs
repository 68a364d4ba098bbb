//! Many keys at once, faster than one by one: a group of searches takes each step together.
//!
//! A lookup mostly waits for memory. The steps of one lookup depend on each other; those of different lookups do not,
//! and the processor has many fetches under way at once if it meets them in a row.

use std::borrow::Cow;

use crate::find::{Keys, Search, fetch_ahead, up_to_key};
use crate::{Dataset, StoreError};

/// Searches that go together. What they fetch (about 1 KiB each) stays in the nearest caches until it is used.
const TOGETHER: usize = 64;

impl Dataset {
    /// [`Dataset::find`] for each of `keys`, in their order.
    ///
    /// # Errors
    /// As [`Dataset::find`], for the first error met.
    pub fn find_batch(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<u64>>, StoreError> {
        let mut found = vec![None; keys.len()];
        if self.is_keyed() {
            let index = Keys::of(self)?;
            for (keys, found) in keys.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
                let keys = keys.iter().map(AsRef::as_ref).zip(found).filter(|(key, _)| self.may_have(key));
                find_together(&index, keys)?;
            }
        }
        Ok(found)
    }
}

/// Looks for a few keys, and puts each answer into its place. Each loop takes one step of all searches; nothing in
/// it depends on the search before.
fn find_together<'k>(
    index: &Keys<'_>,
    keys: impl Iterator<Item = (&'k [u8], &'k mut Option<u64>)>,
) -> Result<(), StoreError> {
    let (mut searches, places): (Vec<Search<'_, '_>>, Vec<&mut Option<u64>>) =
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
