//! The rules that entries, chunks, long lengths and raw lengths keep with each other, checked a few nanoseconds a
//! sample. Used by `load` (the first break is an error) and by `verify` (all breaks are told).
//! spec.md: SEG-2, ENT-1 to ENT-6, CHK-1, CHK-3, LNG-1, RAW-1, RAW-2.

use std::fmt::Arguments;
use std::ops::Range;

use grainstore_format::{BLOCK_LEN, ChunkList, Entry, LongTable, MAX_LZ4_RAW_LEN, SegmentTable, StoredLen, to_usize};

/// LZ4 expands a byte to 255 at most. spec.md: RAW-2.
const LZ4_RATIO_MAX: u64 = 255;

/// What the entries are checked against.
pub(crate) struct EntryRules<'a> {
    pub(crate) table: &'a SegmentTable,
    /// For each segment: is it external.
    pub(crate) external: &'a [bool],
    pub(crate) chunks: &'a ChunkList,
    pub(crate) long: &'a LongTable,
    pub(crate) chunk_size: grainstore_format::ChunkSize,
}

/// Consecutive samples of an index.
pub(crate) struct EntrySlice<'a> {
    pub(crate) first: u64,
    pub(crate) entries: &'a [Entry],
    /// The entry before the first, where there is one.
    pub(crate) before: Option<Entry>,
    /// Section RAW_LEN of the same samples, where there is one.
    pub(crate) raw_len: Option<&'a [u8]>,
}

/// Sums over samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EntryTotals {
    pub(crate) stored_bytes: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) long: u64,
    pub(crate) lz4: u64,
}

impl EntryTotals {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            stored_bytes: self.stored_bytes.saturating_add(other.stored_bytes),
            payload_bytes: self.payload_bytes.saturating_add(other.payload_bytes),
            long: self.long + other.long,
            lz4: self.lz4 + other.lz4,
        }
    }
}

/// Told of every broken rule: the ordinal, and what is wrong with it.
pub(crate) type Wrong<'w> = dyn FnMut(u64, Arguments<'_>) + 'w;

/// The least offset of a sample. spec.md: ENT-2.
pub(crate) fn min_offset(external: bool) -> u64 {
    if external { 0 } else { BLOCK_LEN }
}

/// The stored length of a sample, or none where a long one is missing in its table. spec.md: ENT-3, LNG-1.
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
    /// Checks the samples of a part, and sums them up.
    pub(crate) fn check(&self, part: &EntrySlice<'_>, wrong: &mut Wrong<'_>) -> EntryTotals {
        let mut totals = EntryTotals::default();
        let mut place = 0;
        while place < part.entries.len() {
            let ordinal = part.first + place as u64;
            let segment = self.table.segment_of(ordinal);
            let run = to_usize(self.table.ordinals(segment).end.saturating_sub(ordinal)).max(1);
            let end = place.saturating_add(run).min(part.entries.len());
            totals = totals.plus(self.check_run(part, segment, place..end, wrong));
            place = end;
        }
        totals
    }

    /// Samples of one segment.
    fn check_run(
        &self,
        part: &EntrySlice<'_>,
        segment: usize,
        places: Range<usize>,
        wrong: &mut Wrong<'_>,
    ) -> EntryTotals {
        let mut run = SegmentCheck::new(self, segment);
        let first = part.first + places.start as u64;
        let before = match places.start.checked_sub(1) {
            Some(place) => part.entries.get(place).copied(),
            None => part.before,
        };
        if let Some(before) = before.filter(|_| first > run.ordinals.start) {
            let len = stored_len(&before, first - 1, self.long).unwrap_or_default();
            run.end = before.offset().saturating_add(len);
        }
        let entries = part.entries.get(places.clone()).unwrap_or_default();
        match part.raw_len {
            None => {
                for (ordinal, entry) in (first..).zip(entries) {
                    run.check(ordinal, entry, 0, wrong);
                }
            }
            Some(raw_len) => {
                let (raw_len, _) = raw_len.as_chunks::<4>();
                let raw_len = raw_len.get(places).unwrap_or_default();
                for ((ordinal, entry), raw_len) in (first..).zip(entries).zip(raw_len) {
                    run.check(ordinal, entry, u64::from(u32::from_le_bytes(*raw_len)), wrong);
                }
            }
        }
        run.totals
    }
}

/// The state while the entries of one segment go by.
struct SegmentCheck<'a> {
    rules: &'a EntryRules<'a>,
    segment: u32,
    ordinals: Range<u64>,
    first_chunk: u64,
    data_end: u64,
    /// Where the sample before ends.
    end: u64,
    /// The chunk that owned the sample before, and its samples.
    chunk: u64,
    owned: Range<u64>,
    totals: EntryTotals,
}

impl<'a> SegmentCheck<'a> {
    fn new(rules: &'a EntryRules<'a>, segment: usize) -> Self {
        let external = rules.external.get(segment).copied().unwrap_or(false);
        Self {
            rules,
            segment: u32::try_from(segment).unwrap_or(u32::MAX),
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
    fn check(&mut self, ordinal: u64, entry: &Entry, raw_len: u64, wrong: &mut Wrong<'_>) {
        match entry.stored_len() {
            StoredLen::Here(len) if self.is_plainly_right(ordinal, entry, u64::from(len), raw_len) => {
                self.count(entry, u64::from(len), raw_len);
            }
            _ => self.check_each_rule(ordinal, entry, raw_len, wrong),
        }
    }

    /// The sample is neither the first nor the last of its chunk, and breaks no rule. So most small samples are, and
    /// this is all that is asked of them.
    #[inline]
    fn is_plainly_right(&self, ordinal: u64, entry: &Entry, len: u64, raw_len: u64) -> bool {
        let (offset, end) = (entry.offset(), entry.offset() + len);
        let raw_fits = if entry.is_lz4() { raw_len_fits(len, raw_len) } else { raw_len == 0 };
        raw_fits
            && entry.segment() == self.segment
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
        self.totals.lz4 += u64::from(entry.is_lz4());
    }

    #[inline(never)]
    fn check_each_rule(&mut self, ordinal: u64, entry: &Entry, raw_len: u64, wrong: &mut Wrong<'_>) {
        let offset = entry.offset();
        let len = match entry.stored_len() {
            StoredLen::Here(len) => u64::from(len),
            StoredLen::Long => self.long_len(ordinal, entry, wrong),
        };
        let end = offset.saturating_add(len);
        if entry.segment() != self.segment {
            wrong(ordinal, format_args!("entry says segment {}, it is in segment {}", entry.segment(), self.segment));
        }
        if offset < self.end {
            wrong(ordinal, format_args!("it starts at {offset}, before {}, where the one before ends", self.end));
        }
        if end > self.data_end {
            wrong(ordinal, format_args!("it ends at {end}, the segment's data at {}", self.data_end));
        } else {
            self.check_owner(ordinal, offset, len, wrong);
        }
        let lz4 = entry.is_lz4();
        if lz4 && !raw_len_fits(len, raw_len) {
            wrong(ordinal, format_args!("{len} bytes of LZ4 cannot have {raw_len} raw bytes"));
        }
        if !lz4 && raw_len != 0 {
            wrong(ordinal, format_args!("it is stored raw, yet has the raw length {raw_len}"));
        }
        if ordinal + 1 == self.ordinals.end && end != self.data_end {
            wrong(ordinal, format_args!("it is its segment's last and ends at {end}, the data at {}", self.data_end));
        }
        self.count(entry, len, raw_len);
    }

    #[cold]
    fn long_len(&mut self, ordinal: u64, entry: &Entry, wrong: &mut Wrong<'_>) -> u64 {
        self.totals.long += 1;
        if entry.is_lz4() {
            wrong(ordinal, format_args!("it is long and LZ4, which cannot be"));
        }
        self.rules.long.stored_len(ordinal).unwrap_or_else(|| {
            wrong(ordinal, format_args!("it is long, and the table of long samples does not know it"));
            0
        })
    }

    #[inline]
    fn check_owner(&mut self, ordinal: u64, offset: u64, len: u64, wrong: &mut Wrong<'_>) {
        let owner = self.rules.chunk_size.owner(offset, len);
        if owner != self.chunk {
            self.chunk = owner;
            self.owned = self.rules.chunks.samples(self.first_chunk + owner);
        }
        if !self.owned.contains(&ordinal) {
            let owned = &self.owned;
            wrong(ordinal, format_args!("it belongs to chunk {owner}, which owns {}..{}", owned.start, owned.end));
        } else if ordinal + 1 == self.owned.end {
            let crosses = self.rules.chunk_size.crosses_out_of(owner, offset, len);
            if crosses != self.rules.chunks.edge(self.first_chunk + owner) {
                let not = if crosses { "" } else { "not " };
                wrong(ordinal, format_args!("it does {not}cross out of chunk {owner}, the edge list says otherwise"));
            }
        }
    }
}
