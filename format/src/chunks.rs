//! The chunk list: for every chunk, how many samples it owns. The running sum is the ordinal of its first sample.
//!
//! "Samples of chunk c" is always `first[c]..first[c + 1]`; an empty chunk repeats the first ordinal of the next one.
//! Chunks are numbered through all segments. spec.md: CHK-1 to CHK-3.

use std::ops::Range;

use crate::error::ensure;
use crate::{Bitmap, Directory, FormatError, SectionKind, SegmentTable, to_usize};

const WHAT: &str = "chunk list";

/// The checked chunk list of an index, in memory: 8 bytes a chunk, and the edge bits.
#[derive(Debug, Clone)]
pub struct ChunkList {
    first: Vec<u64>, // one more than chunks
    edges: Vec<u8>,
}

impl ChunkList {
    /// Reads sections CHUNKS and EDGES.
    ///
    /// # Errors
    /// If they disagree with the segment table, with each other or with the directory.
    pub fn decode(
        counts: &[u8],
        edges: Vec<u8>,
        table: &SegmentTable,
        directory: &Directory,
    ) -> Result<Self, FormatError> {
        let chunk_count = table.chunk_count();
        let width = directory.section(SectionKind::Chunks, 0).map_or(0, |record| record.width);
        ensure(counts.len() as u64 == chunk_count.saturating_mul(u64::from(width)), WHAT, || {
            format!("{} bytes for {chunk_count} chunks of width {width}", counts.len())
        })?;
        let (first, largest) = running_sum(counts, width);
        for segment in 0..table.len() {
            let end = first.get(to_usize(table.chunks(segment).end));
            ensure(end == Some(&table.ordinals(segment).end), WHAT, || {
                format!(
                    "the chunks of segment {segment} do not own its {} samples",
                    table.ordinals(segment).end - table.ordinals(segment).start
                )
            })?;
        }
        ensure(width == width_of_count(largest), WHAT, || format!("width {width} for counts of at most {largest}"))?;
        let bits = Bitmap::decode(&edges, chunk_count)?;
        ensure(bits.count_ones() == directory.counts().edge_count, "edge list", || {
            format!("{} bits are set, the directory has {}", bits.count_ones(), directory.counts().edge_count)
        })?;
        let list = Self { first, edges };
        match (0..chunk_count).find(|&chunk| list.edge(chunk) && list.samples(chunk).is_empty()) {
            Some(chunk) => {
                Err(FormatError::damaged("edge list", format!("chunk {chunk} owns no sample that could cross")))
            }
            None => Ok(list),
        }
    }

    /// The number of chunks.
    pub fn len(&self) -> u64 {
        self.first.len() as u64 - 1
    }

    /// Never: a segment has at least one chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ordinals of the samples that `chunk` owns; empty past the end.
    pub fn samples(&self, chunk: u64) -> Range<u64> {
        match self.first.get(to_usize(chunk)..) {
            Some(&[from, to, ..]) => from..to,
            _ => 0..0,
        }
    }

    /// Whether the last sample of `chunk` crosses out of it.
    pub fn edge(&self, chunk: u64) -> bool {
        self.edges.get(to_usize(chunk / 8)).is_some_and(|byte| byte >> (chunk % 8) & 1 == 1)
    }

    /// The list of the first `chunk_count` chunks only (an older generation). spec.md: GEN-1.
    pub fn truncated(&self, chunk_count: u64) -> Self {
        let count = to_usize(chunk_count.min(self.len()));
        let mut edges: Vec<u8> = self.edges.iter().copied().take(count.div_ceil(8)).collect();
        if let (Some(last), used @ 1..) = (edges.last_mut(), count % 8) {
            *last &= (1 << used) - 1;
        }
        Self { first: self.first.iter().copied().take(count + 1).collect(), edges }
    }

    /// The ordinals of the edge samples, ascending.
    pub fn edge_samples(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).filter(|&chunk| self.edge(chunk)).map(|chunk| self.samples(chunk).end - 1)
    }
}

fn running_sum(counts: &[u8], width: u32) -> (Vec<u64>, u64) {
    let width = width.max(1) as usize;
    let mut first = Vec::with_capacity(counts.len() / width + 1);
    let mut sum = 0_u64;
    let mut largest = 0_u64;
    first.push(0);
    for element in counts.chunks_exact(width) {
        let count = element.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        // A saturated sum is not the end of any segment, so the comparison with the table fails.
        sum = sum.saturating_add(count);
        largest = largest.max(count);
        first.push(sum);
    }
    (first, largest)
}

/// Bytes per element of section CHUNKS if no chunk owns more than `largest` samples. spec.md: CHK-2.
pub const fn width_of_count(largest: u64) -> u32 {
    match largest {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GEN-1, CHK-3
    #[test]
    fn an_older_generation_has_only_its_own_chunks_and_edges() {
        let list = ChunkList { first: vec![0, 2, 2, 5], edges: vec![0b101] };
        let older = list.truncated(2);
        assert_eq!((older.len(), older.samples(0), older.samples(2)), (2, 0..2, 0..0));
        assert_eq!(older.edge_samples().collect::<Vec<_>>(), [1]);
        assert!(!older.edge(2));
        assert_eq!(list.truncated(9).edge_samples().collect::<Vec<_>>(), [1, 4]);
    }
}
