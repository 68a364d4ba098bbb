//! All keys in ascending order of ordinals, for callers that need most of them once. spec.md: KEY-7.
//!
//! Only a part of the list is in memory at a time.

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
    /// The byte range of `part` in the list.
    range: Range<u64>,
    part: Cow<'a, [u8]>,
}

impl Dataset {
    /// Reads the keys in order; `None` in a dataset without keys.
    ///
    /// # Errors
    /// If the index has no list of keys.
    pub fn key_scan(&self) -> Result<Option<KeyScan<'_>>, StoreError> {
        if !self.is_keyed() {
            return Ok(None);
        }
        let index = &self.0.index;
        let list_len = index.record(SectionKind::Keys, 0).map_or(0, |record| record.len);
        Ok(Some(KeyScan {
            list: KeyList::of(index)?,
            sample_count: self.sample_count(),
            list_len,
            range: 0..0,
            part: Cow::Borrowed(&[]),
        }))
    }
}

impl KeyScan<'_> {
    /// Calls `take` with the keys of the samples from `64 * group` on, in order: 64 keys, or those that are left.
    /// Groups should be read in ascending order: otherwise a part is read for every group.
    ///
    /// # Errors
    /// If the keys cannot be read, or are damaged.
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
        let to = to_usize(bounds.end - self.range.start);
        let bug = || StoreError::bug("the part of the key list does not hold the group that it was read for");
        let mut rest = self.part.get(from..to).ok_or_else(bug)?;
        for _ in 0..count {
            let (key, later) = split_key(rest).map_err(|error| self.list.wrong(error))?;
            take(key);
            rest = later;
        }
        Ok(())
    }

    /// Reads the part that begins with the bytes `bounds`.
    fn read(&mut self, bounds: &Range<u64>) -> Result<(), StoreError> {
        let end = bounds.start.saturating_add(PART_LEN).min(self.list_len).max(bounds.end);
        self.part = self.list.read_once(bounds.start..end)?;
        self.range = bounds.start..end;
        Ok(())
    }
}

impl std::fmt::Debug for KeyScan<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("KeyScan").field("range", &self.range).finish_non_exhaustive()
    }
}
