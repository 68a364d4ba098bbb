//! Checks the samples: the CRC of all stored bytes, every LZ4 block, the zeros in gaps, and what a field holds, if the
//! caller has a rule for it.
//!
//! A segment is read from front to back in parts, each part by one thread with one buffer. Samples longer than the
//! buffer stream through it. spec.md: ENT-5, RAW-2, SMP-2, CON-5.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use grainstore_format::memory::{NoMemory, reserve};
use grainstore_format::{Geometry, to_usize};
use rayon::prelude::*;

use super::columns::FieldRange;
use super::contents::FieldCheck;
use super::report::FileReport;
use super::slices::{key_of, locations, parallel_parts, parts};
use crate::StoreError;
use crate::entry_rules::{min_offset, raw_len_fits};
use crate::index::Index;
use crate::location::{Encoding, Location};
use crate::payload::{check_and_decode, check_stored, wrong_crc};

/// Bytes that one thread holds of a segment.
const BUFFER_LEN: u64 = 2 << 20;
/// Raw bytes from which few threads decode LZ4 samples at a time: each needs twice as much memory.
const LARGE_LEN: u64 = 8 << 20;
/// About the stored bytes of a part: enough for sequential reads, few enough to share among threads.
const PART_BYTES: u64 = 32 << 20;

/// An index that has a segment's samples: its own, or the merged one.
#[derive(Clone, Copy)]
pub(super) struct SegmentIndex<'a> {
    pub(super) index: &'a Index,
    /// The ordinal of the segment's first sample in this index.
    pub(super) first: u64,
}

impl SegmentIndex<'_> {
    fn locations(&self, ordinals: &Range<u64>) -> Result<Vec<Location>, StoreError> {
        locations(self.index, ordinals.start + self.first..ordinals.end + self.first)
    }

    fn key(&self, ordinal: u64) -> Option<Vec<u8>> {
        key_of(self.index, ordinal + self.first)
    }

    fn field_ranges(&self, check: &FieldCheck, ordinals: &Range<u64>) -> Result<Option<Vec<FieldRange>>, StoreError> {
        check.ranges(self.index, ordinals.start + self.first..ordinals.end + self.first)
    }
}

/// A segment's data, and the indexes that locate its samples: its own first, then the merged one.
pub(super) struct SegmentData<'a> {
    pub(super) report: FileReport<'a>,
    pub(super) file: &'a File,
    pub(super) file_len: u64,
    pub(super) external: bool,
    pub(super) sample_count: u64,
    pub(super) geometry: Geometry,
    pub(super) indexes: Vec<SegmentIndex<'a>>,
}

impl SegmentData<'_> {
    /// Checks all samples.
    pub(super) fn check(&self) {
        let mean_len = (self.file_len / self.sample_count.max(1)).max(1);
        let part_len = (PART_BYTES / mean_len).clamp(1, 65536);
        parallel_parts(0..self.sample_count, part_len).for_each(|ordinals| self.check_part(ordinals));
    }

    /// Checks the zeros from the end of the samples to the index. spec.md: CON-5.
    pub(super) fn check_end(&self, data_end: u64, index_offset: u64) {
        let mut ahead = ReadAhead { data: self, start: 0, bytes: Vec::new(), limit: self.file_len };
        self.check_gap(&mut ahead, data_end..index_offset.min(self.file_len));
    }

    fn check_part(&self, ordinals: Range<u64>) {
        // One sample more in front: the first gap of the part begins at its end.
        let from = ordinals.start.saturating_sub(1);
        let locations = self.indexes.iter().map(|index| index.locations(&(from..ordinals.end)));
        let Some(locations) = locations.filter_map(|located| self.report.readable(located)).next() else { return };
        let mut at = min_offset(self.external);
        let limit = locations.iter().map(|l| l.offset.saturating_add(l.stored_len)).max().unwrap_or(0);
        let mut ahead = ReadAhead { data: self, start: 0, bytes: Vec::new(), limit: limit.min(self.file_len) };
        let fields = self.field_ranges(&(from..ordinals.end));
        let mut fields = fields.iter().flatten();
        let mut raw = Vec::new();
        for (ordinal, location) in (from..ordinals.end).zip(&locations) {
            let field = self.report.field_check().zip(fields.next().copied());
            if self.report.is_stopped() {
                return;
            }
            let end = location.offset.saturating_add(location.stored_len);
            if ordinals.contains(&ordinal) {
                if end > self.file_len {
                    self.wrong(ordinal, location, format!("it ends at {end}, the file ends at {}", self.file_len));
                    continue;
                }
                if !self.external {
                    self.check_gap(&mut ahead, at..location.offset);
                    self.check_alignment(ordinal, location, at);
                }
                self.check_sample(&mut ahead, (ordinal, location), field, &mut raw);
            }
            at = at.max(end);
        }
    }

    /// Where the field whose contents are checked is in the payloads.
    fn field_ranges(&self, ordinals: &Range<u64>) -> Option<Vec<FieldRange>> {
        let check = self.report.field_check()?;
        let ranges = self.indexes.iter().map(|index| index.field_ranges(check, ordinals));
        ranges.filter_map(|ranges| self.report.readable(ranges).flatten()).next()
    }

    fn wrong(&self, ordinal: u64, location: &Location, what: String) {
        let key = self.indexes.iter().find_map(|index| index.key(ordinal));
        self.report.sample(ordinal, key, Some(location.offset), what);
    }

    /// spec.md: SMP-2.
    fn check_alignment(&self, ordinal: u64, location: &Location, end_before: u64) {
        let Geometry { chunk_size, alignment, .. } = self.geometry;
        let expected = alignment.place(end_before, location.stored_len, chunk_size);
        // Overlapping samples are reported by the check of the entries.
        if location.offset >= end_before && location.offset != expected {
            let what = format!("with alignment {alignment} it belongs at {expected}, it is at {}", location.offset);
            self.wrong(ordinal, location, what);
        }
    }

    fn check_sample(
        &self,
        ahead: &mut ReadAhead<'_>,
        (ordinal, location): (u64, &Location),
        field: FieldToCheck<'_>,
        raw: &mut Vec<u8>,
    ) {
        self.report.checked(location.stored_len);
        let range = location.offset..location.offset + location.stored_len;
        if let Encoding::Lz4 { raw_len } = location.encoding {
            let stored_len = location.stored_len;
            // An impossible raw length is reported by the check of the entries.
            if !raw_len_fits(stored_len, raw_len) {
                return;
            }
            // No block is as long, so it is not read.
            if stored_len > block_len_max(raw_len) {
                let what = format!("{stored_len} stored bytes are no LZ4 block of {raw_len} raw bytes");
                return self.wrong(ordinal, location, what);
            }
            if stored_len > lz4_len_max(raw_len) {
                let what =
                    format!("it is LZ4, but its {stored_len} stored bytes save less than a sixteenth of {raw_len}");
                self.wrong(ordinal, location, what);
            }
        }
        let result = match location.encoding {
            Encoding::Raw if location.stored_len > BUFFER_LEN => self.check_long(ahead, location, field),
            Encoding::Raw => ahead.read(range).map(|stored| {
                check_stored(location, stored).map_err(|error| error.to_string())?;
                check_field(field, stored)
            }),
            Encoding::Lz4 { raw_len } if raw_len > LARGE_LEN => {
                let _permit = self.report.large_permit();
                let result = check_lz4(ahead, location, field, &mut Vec::new());
                ahead.release();
                result
            }
            Encoding::Lz4 { .. } => check_lz4(ahead, location, field, raw),
        };
        match result {
            Ok(Ok(())) if field.is_some() => self.report.checked_field(),
            Ok(Ok(())) => {}
            Ok(Err(what)) => self.wrong(ordinal, location, what),
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => self.report.io_failure(error),
            Err(error) => self.wrong(ordinal, location, error.to_string()),
        }
    }

    fn check_long(
        &self,
        ahead: &mut ReadAhead<'_>,
        location: &Location,
        field: FieldToCheck<'_>,
    ) -> io::Result<Result<(), String>> {
        let mut hasher = crc32fast::Hasher::new();
        for range in parts(location.offset..location.offset + location.stored_len, BUFFER_LEN) {
            if self.report.is_stopped() {
                return Ok(Ok(()));
            }
            hasher.update(ahead.read(range)?);
        }
        let found = hasher.finalize();
        if found != location.crc {
            return Ok(Err(wrong_crc(location, found).to_string()));
        }
        let Some((check, range)) = field else { return Ok(Ok(())) };
        if let Err(what) = check.check_present(range) {
            return Ok(Err(what));
        }
        let Some(end) = range.offset.checked_add(range.len).filter(|&end| end <= location.stored_len) else {
            // Reported by the check of the columns.
            return Ok(Ok(()));
        };
        let _permit = self.report.large_permit();
        let bytes = ahead.read(location.offset + range.offset..location.offset + end)?;
        let result = check.check_bytes(bytes);
        ahead.release();
        Ok(result)
    }

    /// Checks that bytes which belong to no sample are zero.
    fn check_gap(&self, ahead: &mut ReadAhead<'_>, gap: Range<u64>) {
        if gap.start >= gap.end {
            return;
        }
        for range in parts(gap, BUFFER_LEN) {
            if self.report.is_stopped() {
                return;
            }
            let start = range.start;
            match ahead.read(range).map(|bytes| bytes.iter().position(|&byte| byte != 0)) {
                Ok(None) => {}
                Ok(Some(position)) => {
                    return self.report.at(start + position as u64, "a byte between samples is not zero");
                }
                Err(error) => return self.report.at(start, error.to_string()),
            }
        }
    }
}

/// Checks an LZ4 sample, whose raw length is possible. The inner error is damage.
fn check_lz4(
    ahead: &mut ReadAhead<'_>,
    location: &Location,
    field: FieldToCheck<'_>,
    raw: &mut Vec<u8>,
) -> io::Result<Result<(), String>> {
    raw.clear();
    reserve(raw, location.raw_len()).map_err(out_of_memory)?;
    let stored = ahead.read(location.offset..location.offset + location.stored_len)?;
    let decoded = check_and_decode(location, stored, raw).map_err(|error| error.to_string());
    Ok(decoded.and_then(|()| check_field(field, raw)))
}

/// The rule for a field's contents, and where the field is in the payload; `None` if there is no rule.
type FieldToCheck<'a> = Option<(&'a FieldCheck, FieldRange)>;

fn check_field(field: FieldToCheck<'_>, payload: &[u8]) -> Result<(), String> {
    field.map_or(Ok(()), |(check, range)| check.check_payload(range, payload))
}

/// The most stored bytes of a sample for which LZ4 is used. spec.md: SMP-1.
fn lz4_len_max(raw_len: u64) -> u64 {
    raw_len.saturating_sub(raw_len.div_ceil(16))
}

/// The longest LZ4 block of `raw_len` bytes: literals, and the bytes that count them.
fn block_len_max(raw_len: u64) -> u64 {
    raw_len + raw_len / 255 + 16
}

fn out_of_memory(error: NoMemory) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, error)
}

/// A buffer that reads a segment's file ahead.
struct ReadAhead<'a> {
    data: &'a SegmentData<'a>,
    start: u64,
    bytes: Vec<u8>,
    /// Reading ahead stops here.
    limit: u64,
}

impl ReadAhead<'_> {
    /// Frees the memory.
    fn release(&mut self) {
        self.bytes = Vec::new();
    }

    /// The bytes of `range`, which is inside the file.
    fn read(&mut self, range: Range<u64>) -> io::Result<&[u8]> {
        let held = self.start..self.start + self.bytes.len() as u64;
        if range.start < held.start || range.end > held.end {
            let ahead = (range.start + BUFFER_LEN).min(self.limit);
            let len = range.end.max(ahead) - range.start;
            let more = len.saturating_sub(self.bytes.len() as u64);
            reserve(&mut self.bytes, more).map_err(out_of_memory)?;
            self.bytes.resize(to_usize(len), 0);
            self.start = range.start;
            if let Err(error) = self.data.file.read_exact_at(&mut self.bytes, range.start) {
                self.bytes.clear();
                return Err(error);
            }
        }
        let from = to_usize(range.start - self.start);
        let bytes = self.bytes.get(from..from + to_usize(range.end - range.start));
        bytes.ok_or_else(|| io::Error::other(StoreError::bug("the buffer does not hold the bytes that it has read")))
    }
}
