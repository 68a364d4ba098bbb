//! The segment table: for each segment, its sample count and where its last sample ends. spec.md: SEG-1 to SEG-3.

use zerocopy::byteorder::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::ensure;
use crate::{ChunkSize, FormatError, MAX_OFFSET, chunk_count};

const WHAT: &str = "segment table";

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSegmentRecord {
    sample_count: U64,
    data_end: U64,
}
const _: () = assert!(size_of::<RawSegmentRecord>() == SegmentRecord::LEN);

/// One segment in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentRecord {
    /// Samples, at least 1.
    pub sample_count: u64,
    /// Where the last sample ends, in bytes from the start of the segment's file.
    pub data_end: u64,
}

impl SegmentRecord {
    /// The length of a record in bytes.
    pub const LEN: usize = 16;

    /// The record's bytes.
    pub fn encode(&self) -> [u8; Self::LEN] {
        zerocopy::transmute!(RawSegmentRecord {
            sample_count: U64::new(self.sample_count),
            data_end: U64::new(self.data_end)
        })
    }
}

/// The checked table, with running sums: which ordinals and which chunks belong to which segment.
#[derive(Debug, Clone)]
pub struct SegmentTable {
    records: Vec<SegmentRecord>,
    first_ordinal: Vec<u64>, // one more than records
    first_chunk: Vec<u64>,   // one more than records
}

impl SegmentTable {
    /// Reads the section of an index of `sample_count` samples.
    ///
    /// # Errors
    /// If a rule of the table is broken.
    pub fn decode(bytes: &[u8], sample_count: u64, chunk_size: ChunkSize) -> Result<Self, FormatError> {
        let raw = <[RawSegmentRecord]>::ref_from_bytes(bytes).map_err(|_| {
            FormatError::damaged(WHAT, format!("{} bytes are not a whole number of records", bytes.len()))
        })?;
        let records =
            raw.iter().map(|r| SegmentRecord { sample_count: r.sample_count.get(), data_end: r.data_end.get() });
        let table = Self::new(records.collect(), chunk_size)?;
        ensure(table.sample_count() == sample_count, WHAT, || {
            format!("its segments have {} samples, the directory has {sample_count}", table.sample_count())
        })?;
        Ok(table)
    }

    /// A table of these records.
    ///
    /// # Errors
    /// If there are none, one is empty, or one ends past what an entry can address.
    pub fn new(records: Vec<SegmentRecord>, chunk_size: ChunkSize) -> Result<Self, FormatError> {
        ensure(!records.is_empty(), WHAT, || "it is empty".into())?;
        let mut first_ordinal = vec![0_u64];
        let mut first_chunk = vec![0_u64];
        let mut ordinal = 0_u64;
        let mut chunk = 0_u64;
        for (number, record) in records.iter().enumerate() {
            ensure(record.sample_count >= 1, WHAT, || format!("segment {number} has no samples"))?;
            // A larger one could not be addressed, and would make the chunk lists larger than any file.
            ensure(record.data_end <= MAX_OFFSET + 1, WHAT, || {
                format!("segment {number} ends at {}, past 2^44", record.data_end)
            })?;
            ordinal = ordinal
                .checked_add(record.sample_count)
                .ok_or_else(|| FormatError::damaged(WHAT, "the sample counts overflow"))?;
            chunk += chunk_count(record.data_end, chunk_size);
            first_ordinal.push(ordinal);
            first_chunk.push(chunk);
        }
        Ok(Self { records, first_ordinal, first_chunk })
    }

    /// The number of segments.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Never: a table has at least one segment.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records, in order.
    pub fn records(&self) -> &[SegmentRecord] {
        &self.records
    }

    /// Samples of all segments.
    pub fn sample_count(&self) -> u64 {
        self.first_ordinal.last().copied().unwrap_or(0)
    }

    /// Chunks of all segments.
    pub fn chunk_count(&self) -> u64 {
        self.first_chunk.last().copied().unwrap_or(0)
    }

    /// The ordinals of `segment`; empty if there is no such segment.
    pub fn ordinals(&self, segment: usize) -> std::ops::Range<u64> {
        range_at(&self.first_ordinal, segment)
    }

    /// The chunks of `segment`, numbered through all segments.
    pub fn chunks(&self, segment: usize) -> std::ops::Range<u64> {
        range_at(&self.first_chunk, segment)
    }

    /// The segment that holds `ordinal`, which must be below `sample_count`.
    pub fn segment_of(&self, ordinal: u64) -> usize {
        self.first_ordinal.partition_point(|&first| first <= ordinal).saturating_sub(1)
    }

    /// The table of the first `count` segments only (an older generation).
    pub fn truncated(&self, count: usize) -> Self {
        let take = |list: &[u64]| list.iter().copied().take(count + 1).collect();
        Self {
            records: self.records.iter().copied().take(count).collect(),
            first_ordinal: take(&self.first_ordinal),
            first_chunk: take(&self.first_chunk),
        }
    }
}

fn range_at(starts: &[u64], index: usize) -> std::ops::Range<u64> {
    match (starts.get(index), starts.get(index + 1)) {
        (Some(&from), Some(&to)) => from..to,
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEG-1, SEG-3
    #[test]
    fn finds_the_segment_of_an_ordinal() {
        let size = ChunkSize::new(4096).unwrap();
        let records =
            [SegmentRecord { sample_count: 3, data_end: 4097 }, SegmentRecord { sample_count: 1, data_end: 9000 }];
        let bytes: Vec<u8> = records.iter().flat_map(SegmentRecord::encode).collect();
        let table = SegmentTable::decode(&bytes, 4, size).unwrap();
        assert_eq!((0..4).map(|o| table.segment_of(o)).collect::<Vec<_>>(), [0, 0, 0, 1]);
        assert_eq!((table.ordinals(1), table.chunks(1), table.chunk_count()), (3..4, 2..5, 5));
        assert_eq!(table.truncated(1).sample_count(), 3);
        assert!(SegmentTable::decode(&bytes, 5, size).is_err());
        assert!(SegmentTable::decode(&bytes[..17], 3, size).is_err());
    }

    /// SEG-1, SEG-3
    #[test]
    fn refuses_empty_segments_and_ends_that_no_entry_can_reach() {
        let size = ChunkSize::DEFAULT;
        let table = |sample_count, data_end| SegmentTable::new(vec![SegmentRecord { sample_count, data_end }], size);
        assert!(table(0, 5000).is_err());
        assert!(table(1, (1 << 44) + 1).is_err());
        assert!(table(1, 1 << 44).is_ok());
        assert!(SegmentTable::new(vec![], size).is_err());
    }
}
