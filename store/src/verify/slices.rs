//! Slices of an index's sections, read for a range of samples and not cached: `verify` needs a few megabytes per
//! thread, for an index of any size.

use std::ops::Range;

use grainstore_format::memory::NoMemory;
use grainstore_format::{
    CHECKSUM_PAGE_LEN, Categories, Entry, FormatError, KeyGroups, SectionKind, split_key, to_usize,
};

use crate::StoreError;
use crate::entry_rules::stored_len;
use crate::index::Index;
use crate::index::numbers::numbers;
use crate::location::{Encoding, Location};
use rayon::prelude::*;

/// Samples that are checked at a time.
pub(super) const PART_LEN: u64 = 65536;
/// Bytes of keys that are read at a time, unless a group is longer.
const KEYS_LEN: u64 = 16 * CHECKSUM_PAGE_LEN;

/// Why a check across sections stopped.
pub(super) enum Fault {
    /// The check was stopped.
    Stopped,
    /// A page cannot be read, which the check of all pages has reported, or there is no memory.
    Unreadable(StoreError),
    /// A rule is broken.
    Wrong(String),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error)
    }
}

/// `range` in parts of `len`; the last may be shorter.
pub(super) fn parts(range: Range<u64>, len: u64) -> impl Iterator<Item = Range<u64>> {
    (0..part_count(&range, len)).map(move |part| part_at(&range, len, part))
}

/// The same, in parallel.
pub(super) fn parallel_parts(range: Range<u64>, len: u64) -> impl ParallelIterator<Item = Range<u64>> {
    (0..part_count(&range, len)).into_par_iter().map(move |part| part_at(&range, len, part))
}

fn part_count(range: &Range<u64>, len: u64) -> u64 {
    range.end.saturating_sub(range.start).div_ceil(len.max(1))
}

fn part_at(range: &Range<u64>, len: u64, part: u64) -> Range<u64> {
    let start = range.start + part * len;
    start..(start + len).min(range.end)
}

/// The key of a sample, if it has one that can be read.
pub(super) fn key_of(index: &Index, ordinal: u64) -> Option<Vec<u8>> {
    if !index.frame.directory.is_keyed() || ordinal >= index.sample_count() {
        return None;
    }
    let mut keys = KeyCursor::new(index, ordinal..ordinal + 1).ok()?;
    keys.next_key().ok().flatten().map(|(_, key)| key.to_vec())
}

/// The entries of some samples, as locations. No rule is checked.
pub(super) fn locations(index: &Index, ordinals: Range<u64>) -> Result<Vec<Location>, StoreError> {
    let width = Entry::LEN as u64;
    let bytes = index.read_uncached(SectionKind::Entries, 0, ordinals.start * width..ordinals.end * width)?;
    let raw_len = column(index, SectionKind::RawLen, 0, &ordinals)?;
    let long = index.long()?;
    let entries = ordinals.zip(Entry::slice_of(&bytes)).enumerate();
    let locations = entries.map(|(index, (ordinal, entry))| Location {
        segment: entry.segment() as usize,
        offset: entry.offset(),
        // A long sample without a record is reported by the check of the entries; here it ends past any file.
        stored_len: stored_len(entry, ordinal, long).unwrap_or(u64::MAX),
        crc: entry.crc(),
        encoding: match (entry.is_lz4(), &raw_len) {
            (true, Some(raw_len)) => Encoding::Lz4 { raw_len: raw_len.get(index).copied().unwrap_or(0) },
            (true, None) => Encoding::Lz4 { raw_len: 0 },
            (false, _) => Encoding::Raw,
        },
    });
    Ok(locations.collect())
}

/// The numbers of a column for some samples; `None` if the section is absent.
pub(super) fn column(
    index: &Index,
    kind: SectionKind,
    item: u16,
    ordinals: &Range<u64>,
) -> Result<Option<Vec<u64>>, StoreError> {
    let Some(record) = index.record(kind, item) else { return Ok(None) };
    let width = u64::from(record.width);
    let bytes = index.read_uncached(kind, item, ordinals.start * width..ordinals.end * width)?;
    Ok(Some(numbers(&bytes, record.width).collect()))
}

/// The numbers of a column that the schema requires.
pub(super) fn required_column(
    index: &Index,
    kind: SectionKind,
    item: u16,
    ordinals: &Range<u64>,
) -> Result<Vec<u64>, StoreError> {
    let numbers = column(index, kind, item, ordinals)?;
    numbers.ok_or_else(|| StoreError::bug("an index was opened without a section that its schema requires"))
}

/// The values of an attribute for some samples.
pub(super) struct RawValues {
    bytes: Vec<u8>,
    width: usize,
}

impl RawValues {
    pub(super) fn of(index: &Index, item: u16, ordinals: &Range<u64>) -> Result<Self, StoreError> {
        let record = index.record(SectionKind::Attribute, item);
        let record =
            record.ok_or_else(|| StoreError::bug("an index was opened without a section that its schema requires"))?;
        let width = u64::from(record.width.max(1));
        let bytes = index.read_uncached(SectionKind::Attribute, item, ordinals.start * width..ordinals.end * width)?;
        Ok(Self { bytes, width: to_usize(width) })
    }

    /// The bytes of each value.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.width)
    }
}

/// The categories of an attribute; none without a section.
pub(super) fn categories(index: &Index, item: u16) -> Result<Categories, Fault> {
    let Some(record) = index.record(SectionKind::Categories, item) else { return Ok(Categories::none()) };
    let bytes = index.read_uncached(SectionKind::Categories, item, 0..record.len)?;
    Categories::decode(&bytes).map_err(|error| match error {
        FormatError::NoMemory { source, .. } => Fault::Unreadable(no_memory(index, source)),
        error => Fault::Wrong(error.to_string()),
    })
}

/// A lack of memory for a part of an index.
pub(super) fn no_memory(index: &Index, source: NoMemory) -> StoreError {
    StoreError::NoMemory { path: index.frame.path().to_owned(), source }
}

/// Which of some samples have an attribute or field; all of them if the section is absent.
pub(super) fn bits(
    index: &Index,
    kind: SectionKind,
    item: u16,
    ordinals: &Range<u64>,
) -> Result<Vec<bool>, StoreError> {
    if index.record(kind, item).is_none() || ordinals.is_empty() {
        return Ok(vec![true; to_usize(ordinals.end - ordinals.start)]);
    }
    let first_byte = ordinals.start / 8;
    let bytes = index.read_uncached(kind, item, first_byte..ordinals.end.div_ceil(8))?;
    let bit =
        |ordinal: u64| bytes.get(to_usize(ordinal / 8 - first_byte)).is_some_and(|byte| byte >> (ordinal % 8) & 1 == 1);
    Ok(ordinals.clone().map(bit).collect())
}

/// Reads the keys of some samples, group by group. spec.md: KEY-7.
pub(super) struct KeyCursor<'a> {
    index: &'a Index,
    ordinal: u64,
    end: u64,
    /// Bytes of whole groups, and how many of them have been read.
    buffer: Vec<u8>,
    used: usize,
    /// Where the groups end in the buffer, the next one last.
    group_ends: Vec<usize>,
    next_group: u64,
}

impl<'a> KeyCursor<'a> {
    /// Keys of `ordinals`, which must exist.
    pub(super) fn new(index: &'a Index, ordinals: Range<u64>) -> Result<Self, Fault> {
        let group = ordinals.start / KeyGroups::GROUP_LEN;
        let mut cursor = Self {
            index,
            ordinal: group * KeyGroups::GROUP_LEN,
            end: ordinals.end,
            buffer: Vec::new(),
            used: 0,
            group_ends: Vec::new(),
            next_group: group,
        };
        while cursor.ordinal < ordinals.start {
            cursor.next_key()?;
        }
        Ok(cursor)
    }

    /// The next sample's key; `None` after the last.
    pub(super) fn next_key(&mut self) -> Result<Option<(u64, &[u8])>, Fault> {
        if self.ordinal >= self.end {
            return Ok(None);
        }
        if self.ordinal.is_multiple_of(KeyGroups::GROUP_LEN) {
            self.begin_group()?;
        }
        let group = self.group_ends.last().and_then(|end| self.buffer.get(self.used..*end));
        let group = group.ok_or_else(|| StoreError::bug("the key cursor has no group for its next key"))?;
        let end = self.used + group.len();
        let (key, rest) = split_key(group).map_err(|error| Fault::Wrong(format!("key {}: {error}", self.ordinal)))?;
        self.used = end - rest.len();
        let ordinal = self.ordinal;
        self.ordinal += 1;
        let last_of_group =
            self.ordinal.is_multiple_of(KeyGroups::GROUP_LEN) || self.ordinal == self.index.sample_count();
        if last_of_group && !rest.is_empty() {
            return Err(Fault::Wrong(format!("{} bytes follow key {ordinal}, the last of its group", rest.len())));
        }
        Ok(Some((ordinal, key)))
    }

    fn begin_group(&mut self) -> Result<(), Fault> {
        self.group_ends.pop();
        if self.group_ends.is_empty() {
            self.read_groups()?;
        }
        Ok(())
    }

    /// Reads the next groups: one, or as many as are short together.
    fn read_groups(&mut self) -> Result<(), Fault> {
        let first = self.next_group;
        let until = self.end.div_ceil(KeyGroups::GROUP_LEN).min(first + PART_LEN / KeyGroups::GROUP_LEN);
        let starts = self.index.read_uncached(SectionKind::KeyGroups, 0, 8 * first..8 * (until + 1))?;
        let starts: Vec<u64> = numbers(&starts, 8).collect();
        let [begin, rest @ ..] = starts.as_slice() else {
            return Err(StoreError::bug("a read returned no bytes").into());
        };
        let keys_len = self.index.record(SectionKind::Keys, 0).map_or(0, |record| record.len);
        let mut ends = Vec::new();
        let mut before = *begin;
        for &end in rest {
            if end < before || end > keys_len || end - before > crate::keys::MAX_GROUP_LEN {
                let group = first + ends.len() as u64;
                return Err(Fault::Wrong(format!("key group {group} has the bytes {before}..{end} of {keys_len}")));
            }
            if !ends.is_empty() && end - begin > KEYS_LEN {
                break;
            }
            ends.push(to_usize(end - begin));
            before = end;
        }
        self.buffer = self.index.read_uncached(SectionKind::Keys, 0, *begin..before)?;
        self.used = 0;
        self.next_group = first + ends.len() as u64;
        ends.reverse();
        self.group_ends = ends;
        Ok(())
    }
}
