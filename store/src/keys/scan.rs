//! All keys in ascending order of ordinals, for who asks for most of them once. spec.md: KEY-7.
//!
//! They pass by: what is held is a part of the list, not all of it.

use std::borrow::Cow;
use std::ops::Range;

use grainstore_format::{KeyGroups, SectionKind, split_key, to_usize};

use super::list::KeyList;
use crate::{Dataset, StoreError};

/// Bytes of the list that are read at a time.
const PART_LEN: u64 = 1 << 20;

/// Reads keys in groups of 64. Made by [`Dataset::key_scan`].
pub struct KeyScan<'a> {
    list: KeyList<'a>,
    sample_count: u64,
    list_len: u64,
    /// Where the part lies in the list.
    range: Range<u64>,
    part: Cow<'a, [u8]>,
}

impl Dataset {
    /// Reads the keys in order; none in a dataset without keys.
    ///
    /// # Errors
    /// Where the index has no list of keys.
    pub fn key_scan(&self) -> Result<Option<KeyScan<'_>>, StoreError> {
        if !self.is_keyed() {
            return Ok(None);
        }
        let index = &self.0.index;
        let list_len = index.record(SectionKind::Keys, 0).map_or(0, |record| record.len);
        let (list, sample_count) = (KeyList::of(index)?, self.sample_count());
        Ok(Some(KeyScan { list, sample_count, list_len, range: 0..0, part: Cow::Borrowed(&[]) }))
    }
}

impl KeyScan<'_> {
    /// Hands the keys of the samples from `64 * group` on, 64 of them or those that are left, to `take`, in order.
    /// Groups are asked for in ascending order, or the part that is held is of no use.
    ///
    /// # Errors
    /// Where the keys cannot be read, or are none.
    pub fn group(&mut self, group: u64, mut take: impl FnMut(&[u8])) -> Result<(), StoreError> {
        let first = group.saturating_mul(KeyGroups::GROUP_LEN);
        let count = self.sample_count.saturating_sub(first).min(KeyGroups::GROUP_LEN);
        if count == 0 {
            return Ok(());
        }
        let bounds = self.list.bounds(first)?;
        if bounds.start < self.range.start || bounds.end > self.range.end {
            self.read(&bounds)?;
        }
        let from = to_usize(bounds.start - self.range.start);
        let mut rest = self.part.get(from..to_usize(bounds.end - self.range.start)).unwrap_or_default();
        for _ in 0..count {
            let (key, behind) = split_key(rest).map_err(|error| self.list.wrong(error))?;
            take(key);
            rest = behind;
        }
        Ok(())
    }

    /// Reads the part that begins with these bytes.
    fn read(&mut self, bounds: &Range<u64>) -> Result<(), StoreError> {
        let end = bounds.start.saturating_add(PART_LEN).min(self.list_len).max(bounds.end);
        self.part = self.list.pass(bounds.start..end)?;
        self.range = bounds.start..end;
        Ok(())
    }
}

impl std::fmt::Debug for KeyScan<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("KeyScan").field("range", &self.range).finish_non_exhaustive()
    }
}
