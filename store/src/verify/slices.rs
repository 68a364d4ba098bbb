//! Slices of an index's sections, read for a range of samples and not kept: `verify` needs a few megabytes a thread,
//! however large the index is.

use std::ops::Range;

use grainstore_format::{Entry, KeyGroups, PIECE_LEN, SectionKind, split_key, to_usize};

use crate::StoreError;
use crate::entry_rules::stored_len;
use crate::index::Index;
use crate::index::numbers::numbers;
use crate::location::{Encoding, Location};
use rayon::prelude::*;

/// Samples that are looked at in one go.
pub(super) const PART_LEN: u64 = 65536;
/// Bytes of keys that are read in one go, where a group is not longer.
const KEYS_LEN: u64 = 16 * PIECE_LEN;

/// Why a relation could not be checked to its end.
pub(super) enum Fault {
    /// A piece cannot be read. The pass over all pieces has told so. Or the check was stopped.
    Unreadable,
    /// A rule is broken.
    Wrong(String),
}

impl From<StoreError> for Fault {
    fn from(_: StoreError) -> Self {
        Self::Unreadable
    }
}

/// `range` in parts of `len`; the last may be shorter.
pub(super) fn parts(range: Range<u64>, len: u64) -> impl Iterator<Item = Range<u64>> {
    (0..part_count(&range, len)).map(move |part| part_at(&range, len, part))
}

/// The same, for work in parallel.
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

/// The key of a sample, where it has one that can be read.
pub(super) fn key_of(index: &Index, ordinal: u64) -> Option<Vec<u8>> {
    if !index.frame.directory.is_keyed() || ordinal >= index.sample_count() {
        return None;
    }
    let mut keys = KeyCursor::new(index, ordinal..ordinal + 1).ok()?;
    keys.next_key().ok().flatten().map(|(_, key)| key.to_vec())
}

/// The entries of some samples, as locations; `external` and the like are not judged here.
pub(super) fn locations(index: &Index, ordinals: Range<u64>) -> Result<Vec<Location>, StoreError> {
    let width = Entry::LEN as u64;
    let bytes = index.peek(SectionKind::Entries, 0, ordinals.start * width..ordinals.end * width)?;
    let raw_len = column(index, SectionKind::RawLen, 0, &ordinals)?;
    let long = index.long()?;
    let entries = ordinals.zip(Entry::slice_of(&bytes)).enumerate();
    let locations = entries.map(|(place, (ordinal, entry))| Location {
        segment: entry.segment() as usize,
        offset: entry.offset(),
        stored_len: stored_len(entry, ordinal, long).unwrap_or(u64::MAX),
        crc: entry.crc(),
        encoding: match (entry.is_lz4(), &raw_len) {
            (true, Some(raw_len)) => Encoding::Lz4 { raw_len: raw_len.get(place).copied().unwrap_or(0) },
            (true, None) => Encoding::Lz4 { raw_len: 0 },
            (false, _) => Encoding::Raw,
        },
    });
    Ok(locations.collect())
}

/// The numbers of a column for some samples; none where the section is absent.
pub(super) fn column(
    index: &Index,
    kind: SectionKind,
    item: u16,
    ordinals: &Range<u64>,
) -> Result<Option<Vec<u64>>, StoreError> {
    let Some(record) = index.record(kind, item) else { return Ok(None) };
    let width = u64::from(record.width);
    let bytes = index.peek(kind, item, ordinals.start * width..ordinals.end * width)?;
    Ok(Some(numbers(&bytes, record.width).collect()))
}

/// Which of some samples have an attribute or field; all of them where the section is absent.
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
    let bytes = index.peek(kind, item, first_byte..ordinals.end.div_ceil(8))?;
    let bit =
        |ordinal: u64| bytes.get(to_usize(ordinal / 8 - first_byte)).is_some_and(|byte| byte >> (ordinal % 8) & 1 == 1);
    Ok(ordinals.clone().map(bit).collect())
}

/// Walks over the keys of some samples, group by group. spec.md: KEY-7.
pub(super) struct KeyCursor<'a> {
    index: &'a Index,
    ordinal: u64,
    end: u64,
    /// Bytes of whole groups, and how far they are used up.
    buffer: Vec<u8>,
    used: usize,
    /// Where the groups in the buffer end in it, the next one last.
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

    /// The next sample's key; none after the last.
    pub(super) fn next_key(&mut self) -> Result<Option<(u64, &[u8])>, Fault> {
        if self.ordinal >= self.end {
            return Ok(None);
        }
        if self.ordinal.is_multiple_of(KeyGroups::GROUP_LEN) {
            self.begin_group()?;
        }
        let end = self.group_ends.last().copied().unwrap_or_default();
        let group = self.buffer.get(self.used..end).unwrap_or_default();
        let (key, rest) = split_key(group).map_err(|error| Fault::Wrong(format!("key {}: {error}", self.ordinal)))?;
        self.used = end - rest.len();
        let ordinal = self.ordinal;
        self.ordinal += 1;
        let last_of_group =
            self.ordinal.is_multiple_of(KeyGroups::GROUP_LEN) || self.ordinal == self.index.sample_count();
        if last_of_group && !rest.is_empty() {
            return Err(Fault::Wrong(format!("{} bytes stand behind key {ordinal} in its group", rest.len())));
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
        let starts = self.index.peek(SectionKind::KeyGroups, 0, 8 * first..8 * (until + 1))?;
        let starts: Vec<u64> = numbers(&starts, 8).collect();
        let [begin, rest @ ..] = starts.as_slice() else { return Err(Fault::Unreadable) };
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
        self.buffer = self.index.peek(SectionKind::Keys, 0, *begin..before)?;
        self.used = 0;
        self.next_group = first + ends.len() as u64;
        ends.reverse();
        self.group_ends = ends;
        Ok(())
    }
}
