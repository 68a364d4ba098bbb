//! The rules between entries, chunks, long lengths and raw lengths. Checking takes a few nanoseconds per sample. Used
//! by `load` (the first broken rule is an error) and by `verify` (all are reported).
//! spec.md: SEG-2, ENT-1 to ENT-6, CHK-1, CHK-3, LNG-1, RAW-1, RAW-2.

use std::fmt::Arguments;
use std::ops::Range;

use grainstore_format::{BLOCK_LEN, ChunkList, Entry, LongTable, MAX_LZ4_RAW_LEN, SegmentTable, StoredLen, to_usize};

/// The largest number of bytes that LZ4 makes of one byte. spec.md: RAW-2.
const LZ4_RATIO_MAX: u64 = 255;

/// What the entries are checked against.
pub(crate) struct EntryRules<'a> {
    pub(crate) table: &'a SegmentTable,
    /// For each segment: whether it is external.
    pub(crate) external: &'a [bool],
    pub(crate) chunks: &'a ChunkList,
    pub(crate) long: &'a LongTable,
    pub(crate) chunk_size: grainstore_format::ChunkSize,
}

/// The entries of consecutive samples of an index, and their raw lengths if it has them.
#[derive(Clone, Copy)]
pub(crate) struct EntrySlice<'a> {
    /// The ordinal of the first sample.
    first: u64,
    entries: &'a [Entry],
    /// The entry before the first, if there is one.
    before: Option<Entry>,
    /// Section RAW_LEN of the same samples, as long as `entries`.
    raw_len: Option<&'a [[u8; 4]]>,
}

impl<'a> EntrySlice<'a> {
    /// `None` if there are not as many raw lengths as entries.
    pub(crate) fn new(
        first: u64,
        entries: &'a [Entry],
        before: Option<Entry>,
        raw_len: Option<&'a [u8]>,
    ) -> Option<Self> {
        let raw_len = raw_len.map(|bytes| bytes.as_chunks::<4>().0);
        let is_whole = raw_len.is_none_or(|raw_len| raw_len.len() == entries.len());
        is_whole.then_some(Self { first, entries, before, raw_len })
    }

    /// The first `count` samples, and the rest.
    fn split_at(self, count: usize) -> (Self, Self) {
        let count = count.min(self.entries.len());
        let (entries, later) = self.entries.split_at(count);
        let raw_len = self.raw_len.map(|raw_len| raw_len.split_at(count));
        let before = entries.last().copied().or(self.before);
        (
            Self { entries, raw_len: raw_len.map(|both| both.0), ..self },
            Self { first: self.first + count as u64, entries: later, before, raw_len: raw_len.map(|both| both.1) },
        )
    }
}

/// Totals over samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EntryTotals {
    pub(crate) stored_bytes: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) long_count: u64,
    pub(crate) lz4_count: u64,
}

impl EntryTotals {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            stored_bytes: self.stored_bytes.saturating_add(other.stored_bytes),
            payload_bytes: self.payload_bytes.saturating_add(other.payload_bytes),
            long_count: self.long_count + other.long_count,
            lz4_count: self.lz4_count + other.lz4_count,
        }
    }
}

/// Called for every broken rule, with the ordinal and what is wrong.
pub(crate) type ReportBrokenRule<'r> = dyn FnMut(u64, Arguments<'_>) + 'r;

/// The smallest offset of a sample. spec.md: ENT-2.
pub(crate) fn min_offset(external: bool) -> u64 {
    if external { 0 } else { BLOCK_LEN }
}

/// The stored length of a sample; `None` if it is long and missing in the table. spec.md: ENT-3, LNG-1.
#[inline]
pub(crate) fn stored_len(entry: &Entry, ordinal: u64, long: &LongTable) -> Option<u64> {
    match entry.stored_len() {
        StoredLen::Here(len) => Some(u64::from(len)),
        StoredLen::Long => long.stored_len(ordinal),
    }
}

/// Whether an LZ4 sample may have this raw length. spec.md: ENT-6, RAW-2.
pub(crate) fn raw_len_fits(stored_len: u64, raw_len: u64) -> bool {
    stored_len >= 1 && (1..=MAX_LZ4_RAW_LEN.min(stored_len.saturating_mul(LZ4_RATIO_MAX))).contains(&raw_len)
}

impl EntryRules<'_> {
    /// Checks the samples of a slice, and adds them up.
    pub(crate) fn check(&self, slice: EntrySlice<'_>, report: &mut ReportBrokenRule<'_>) -> EntryTotals {
        let mut totals = EntryTotals::default();
        let mut rest = slice;
        while !rest.entries.is_empty() {
            let segment = self.table.segment_of(rest.first);
            let left = to_usize(self.table.ordinals(segment).end.saturating_sub(rest.first));
            let (of_segment, later) = rest.split_at(left.max(1));
            totals = totals.plus(self.check_segment(&of_segment, segment, report));
            rest = later;
        }
        totals
    }

    /// Checks samples of one segment.
    fn check_segment(&self, slice: &EntrySlice<'_>, segment: usize, report: &mut ReportBrokenRule<'_>) -> EntryTotals {
        let mut check = SegmentCheck::new(self, segment);
        if let Some(before) = slice.before.filter(|_| slice.first > check.ordinals.start) {
            // A long sample that is missing in its table is reported separately; here its length counts as 0.
            let len = stored_len(&before, slice.first - 1, self.long).unwrap_or(0);
            check.end = before.offset().saturating_add(len);
        }
        let entries = (slice.first..).zip(slice.entries);
        match slice.raw_len {
            None => {
                for (ordinal, entry) in entries {
                    check.check(ordinal, entry, 0, report);
                }
            }
            Some(raw_len) => {
                for ((ordinal, entry), raw_len) in entries.zip(raw_len) {
                    check.check(ordinal, entry, u64::from(u32::from_le_bytes(*raw_len)), report);
                }
            }
        }
        check.totals
    }
}

/// The state of a check of one segment's entries, in order.
struct SegmentCheck<'a> {
    rules: &'a EntryRules<'a>,
    segment: usize,
    ordinals: Range<u64>,
    first_chunk: u64,
    data_end: u64,
    /// Where the previous sample ends.
    end: u64,
    /// The chunk that owned the previous sample, and its samples.
    chunk: u64,
    owned: Range<u64>,
    totals: EntryTotals,
}

impl<'a> SegmentCheck<'a> {
    fn new(rules: &'a EntryRules<'a>, segment: usize) -> Self {
        debug_assert!(segment < rules.table.len().min(rules.external.len()), "a segment of the table");
        let external = rules.external.get(segment).copied().unwrap_or(false);
        Self {
            rules,
            segment,
            ordinals: rules.table.ordinals(segment),
            first_chunk: rules.table.chunks(segment).start,
            data_end: rules.table.records().get(segment).map_or(0, |record| record.data_end),
            end: min_offset(external),
            chunk: u64::MAX,
            owned: 0..0,
            totals: EntryTotals::default(),
        }
    }

    #[inline]
    fn check(&mut self, ordinal: u64, entry: &Entry, raw_len: u64, report: &mut ReportBrokenRule<'_>) {
        match entry.stored_len() {
            StoredLen::Here(len) if self.is_plainly_right(ordinal, entry, u64::from(len), raw_len) => {
                self.count(entry, u64::from(len), raw_len);
            }
            _ => self.check_each_rule(ordinal, entry, raw_len, report),
        }
    }

    /// Whether the sample is neither the first nor the last of its chunk, and breaks no rule. This is true of most
    /// small samples, which need no other check.
    #[inline]
    fn is_plainly_right(&self, ordinal: u64, entry: &Entry, len: u64, raw_len: u64) -> bool {
        let offset = entry.offset();
        let end = offset + len;
        let raw_fits = if entry.is_lz4() { raw_len_fits(len, raw_len) } else { raw_len == 0 };
        raw_fits
            && entry.segment() as usize == self.segment
            && offset >= self.end
            && end <= self.data_end
            && self.rules.chunk_size.owner(offset, len) == self.chunk
            && ordinal >= self.owned.start
            && ordinal + 1 < self.owned.end.min(self.ordinals.end)
    }

    #[inline]
    fn count(&mut self, entry: &Entry, len: u64, raw_len: u64) {
        self.end = self.end.max(entry.offset().saturating_add(len));
        self.totals.stored_bytes = self.totals.stored_bytes.saturating_add(len);
        self.totals.payload_bytes =
            self.totals.payload_bytes.saturating_add(if entry.is_lz4() { raw_len } else { len });
        self.totals.lz4_count += u64::from(entry.is_lz4());
    }

    #[inline(never)]
    fn check_each_rule(&mut self, ordinal: u64, entry: &Entry, raw_len: u64, report: &mut ReportBrokenRule<'_>) {
        let offset = entry.offset();
        let len = match entry.stored_len() {
            StoredLen::Here(len) => u64::from(len),
            StoredLen::Long => self.long_len(ordinal, entry, report),
        };
        let end = offset.saturating_add(len);
        if entry.segment() as usize != self.segment {
            let expected = self.segment;
            report(ordinal, format_args!("its entry has segment {}, it is in segment {expected}", entry.segment()));
        }
        if offset < self.end {
            report(ordinal, format_args!("it starts at {offset}, the previous sample ends at {}", self.end));
        }
        if end > self.data_end {
            report(ordinal, format_args!("it ends at {end}, the segment's data ends at {}", self.data_end));
        } else {
            self.check_owner(ordinal, offset, len, report);
        }
        let lz4 = entry.is_lz4();
        if lz4 && !raw_len_fits(len, raw_len) {
            report(ordinal, format_args!("{len} bytes of LZ4 cannot hold {raw_len} raw bytes"));
        }
        if !lz4 && raw_len != 0 {
            report(ordinal, format_args!("it is stored raw, but has the raw length {raw_len}"));
        }
        if ordinal + 1 == self.ordinals.end && end != self.data_end {
            report(
                ordinal,
                format_args!("it is the last of its segment and ends at {end}, the data ends at {}", self.data_end),
            );
        }
        self.count(entry, len, raw_len);
    }

    #[cold]
    fn long_len(&mut self, ordinal: u64, entry: &Entry, report: &mut ReportBrokenRule<'_>) -> u64 {
        self.totals.long_count += 1;
        if entry.is_lz4() {
            report(ordinal, format_args!("it is both long and LZ4"));
        }
        self.rules.long.stored_len(ordinal).unwrap_or_else(|| {
            report(ordinal, format_args!("it is long, but missing in the table of long samples"));
            0
        })
    }

    #[inline]
    fn check_owner(&mut self, ordinal: u64, offset: u64, len: u64, report: &mut ReportBrokenRule<'_>) {
        let owner = self.rules.chunk_size.owner(offset, len);
        if owner != self.chunk {
            self.chunk = owner;
            self.owned = self.rules.chunks.samples(self.first_chunk + owner);
        }
        if !self.owned.contains(&ordinal) {
            let owned = &self.owned;
            report(ordinal, format_args!("it belongs to chunk {owner}, which owns {}..{}", owned.start, owned.end));
        } else if ordinal + 1 == self.owned.end {
            let crosses = self.rules.chunk_size.crosses_out_of(owner, offset, len);
            if crosses != self.rules.chunks.edge(self.first_chunk + owner) {
                let not = if crosses { "" } else { "not " };
                report(ordinal, format_args!("it does {not}cross the end of chunk {owner}, the edge list disagrees"));
            }
        }
    }
}
