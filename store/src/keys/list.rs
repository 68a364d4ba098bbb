//! The list of keys: from ordinal to key. spec.md: KEY-1, KEY-7.

use std::borrow::Cow;
use std::ops::Range;

use grainstore_format::{FormatError, KeyGroups, MAX_KEY_LEN, SectionKind};

use crate::index::Index;
use crate::index::section::View;
use crate::{Dataset, StoreError};

/// The largest number of bytes of a group: its keys and their lengths.
pub(crate) const MAX_GROUP_LEN: u64 = KeyGroups::GROUP_LEN * (MAX_KEY_LEN as u64 + 3);

impl Dataset {
    /// The key of sample `ordinal`; none in a dataset without keys.
    ///
    /// # Errors
    /// If there is no such sample, or its key cannot be read.
    pub fn key(&self, ordinal: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.check_ordinal(ordinal)?;
        if !self.is_keyed() {
            return Ok(None);
        }
        read_key(&self.0.index, ordinal).map(Some)
    }
}

/// Reads one key.
pub(crate) fn read_key(index: &Index, ordinal: u64) -> Result<Vec<u8>, StoreError> {
    let list = KeyList::of(index)?;
    let group = list.group(list.bounds(ordinal)?)?;
    key_in_group(index, &group, ordinal).map(<[u8]>::to_vec)
}

/// The keys in groups of 64, and where each group starts. spec.md: KEY-7.
pub(crate) struct KeyList<'a> {
    index: &'a Index,
    starts: View<'a>,
    keys: View<'a>,
}

impl<'a> KeyList<'a> {
    pub(crate) fn of(index: &'a Index) -> Result<Self, StoreError> {
        let starts = index.view(SectionKind::KeyGroups)?;
        let keys = index.view(SectionKind::Keys)?;
        Ok(Self { index, starts, keys })
    }

    /// Where the group with the key of `ordinal` starts and ends.
    #[inline]
    pub(crate) fn bounds(&self, ordinal: u64) -> Result<Range<u64>, StoreError> {
        let group = ordinal / KeyGroups::GROUP_LEN;
        let (from, to) = self.starts.start_and_end(group)?;
        // A longer group is damaged, so it is not read.
        if from > to || to - from > MAX_GROUP_LEN {
            return Err(self.index.damaged("key groups", format!("group {group} has the bytes {from}..{to}")));
        }
        Ok(from..to)
    }

    /// The keys of a group, each after its length.
    #[inline]
    pub(crate) fn group(&self, bounds: Range<u64>) -> Result<Cow<'a, [u8]>, StoreError> {
        self.keys.read(bounds)
    }

    /// Bytes of the list, not cached unless all of it is loaded.
    pub(crate) fn read_once(&self, range: Range<u64>) -> Result<Cow<'a, [u8]>, StoreError> {
        self.keys.read_once(range)
    }

    pub(crate) fn wrong(&self, error: FormatError) -> StoreError {
        self.index.wrong(error)
    }
}

/// The key of `ordinal` in its group.
#[inline]
pub(crate) fn key_in_group<'g>(index: &Index, group: &'g [u8], ordinal: u64) -> Result<&'g [u8], StoreError> {
    let position = ordinal % KeyGroups::GROUP_LEN;
    let key = match after_short_keys(group, position) {
        Some(rest) => KeyGroups::key_in_group(rest, 0),
        None => KeyGroups::key_in_group(group, position),
    };
    key.map_err(|error| index.wrong(error))
}

/// The bytes after the first `count` keys if the length of each of them takes one byte, which is nearly always so and
/// several times faster. `None` if not, or if the group is damaged.
#[inline]
fn after_short_keys(group: &[u8], count: u64) -> Option<&[u8]> {
    let mut at = 0;
    for _ in 0..count {
        match *group.get(at)? {
            len @ 1..0x80 => at += 1 + usize::from(len),
            _ => return None,
        }
    }
    group.get(at..)
}
