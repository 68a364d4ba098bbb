//! The chunk list: for every chunk, how many samples it owns. The running sum is the ordinal of its first sample.
//!
//! The samples of a chunk follow those of the chunk before it; an empty chunk starts where the next one does.
//! Chunks are numbered through all segments. spec.md: CHK-1 to CHK-3.

use std::ops::Range;

use crate::error::ensure;
use crate::{Bitmap, Directory, FormatError, SectionKind, SegmentTable, memory, to_usize};

const WHAT: &str = "chunk list";

/// Chunks between two stored sums: this costs half a byte a chunk, and at most 15 additions a look-up.
const GROUP: usize = 16;

/// The checked chunk list of an index, in memory: both sections as they are in the file, and half a byte a chunk.
#[derive(Debug, Clone)]
pub struct ChunkList {
    /// Section CHUNKS: little-endian numbers of `width` bytes.
    counts: Vec<u8>,
    width: usize,
    /// The ordinals of the first samples of chunks 0, 16, 32, ...
    first: Vec<u64>,
    edges: Vec<u8>,
}

impl ChunkList {
    /// Takes the bytes of sections CHUNKS and EDGES.
    ///
    /// # Errors
    /// If they disagree with the segment table, with each other or with the directory, or there is no memory.
    pub fn decode(
        counts: Vec<u8>,
        edges: Vec<u8>,
        table: &SegmentTable,
        directory: &Directory,
    ) -> Result<Self, FormatError> {
        let chunk_count = table.chunk_count();
        let width = directory.section(SectionKind::Chunks, 0).map_or(0, |record| record.width);
        ensure(counts.len() as u64 == chunk_count.saturating_mul(u64::from(width)), WHAT, || {
            format!("{} bytes for {chunk_count} chunks of width {width}", counts.len())
        })?;
        let list = Self::of(counts, width.max(1) as usize, edges)?;
        for segment in 0..table.len() {
            let end = list.first_of(table.chunks(segment).end);
            ensure(end == table.ordinals(segment).end, WHAT, || {
                format!(
                    "the chunks of segment {segment} do not own its {} samples",
                    table.ordinals(segment).end - table.ordinals(segment).start
                )
            })?;
        }
        let bits = Bitmap::decode(&list.edges, chunk_count)?;
        ensure(bits.count_ones() == directory.counts().edge_count, "edge list", || {
            format!("{} bits are set, the directory has {}", bits.count_ones(), directory.counts().edge_count)
        })?;
        match (0..chunk_count).find(|&chunk| list.edge(chunk) && list.samples(chunk).is_empty()) {
            Some(chunk) => {
                Err(FormatError::damaged("edge list", format!("chunk {chunk} owns no sample that could cross")))
            }
            None => Ok(list),
        }
    }

    /// Adds up the counts. A sum that does not fit saturates: it is not the end of any segment.
    fn of(counts: Vec<u8>, width: usize, edges: Vec<u8>) -> Result<Self, FormatError> {
        let mut first = Vec::new();
        let group_count = (counts.len() / width).div_ceil(GROUP) as u64;
        memory::reserve(&mut first, group_count).map_err(FormatError::no_memory(WHAT))?;
        let mut sum = 0_u64;
        for group in counts.chunks(GROUP * width) {
            first.push(sum);
            sum = sum.saturating_add(sum_of(group, width));
        }
        Ok(Self { counts, width, first, edges })
    }

    /// The number of chunks.
    pub fn len(&self) -> u64 {
        (self.counts.len() / self.width) as u64
    }

    /// Never: a segment has at least one chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ordinals of the samples that `chunk` owns; empty past the end.
    #[inline]
    pub fn samples(&self, chunk: u64) -> Range<u64> {
        if chunk >= self.len() {
            return 0..0;
        }
        let start = self.first_of(chunk);
        start..start.saturating_add(self.count(to_usize(chunk)))
    }

    /// Whether the last sample of `chunk` crosses out of it.
    pub fn edge(&self, chunk: u64) -> bool {
        self.edges.get(to_usize(chunk / 8)).is_some_and(|byte| byte >> (chunk % 8) & 1 == 1)
    }

    /// The list of the first `chunk_count` chunks only (an older generation). spec.md: GEN-1.
    #[must_use]
    pub fn truncated(mut self, chunk_count: u64) -> Self {
        let count = to_usize(chunk_count.min(self.len()));
        self.counts.truncate(count * self.width);
        self.first.truncate(count.div_ceil(GROUP));
        self.edges.truncate(count.div_ceil(8));
        if let (Some(last), used @ 1..) = (self.edges.last_mut(), count % 8) {
            *last &= (1 << used) - 1;
        }
        self
    }

    /// The ordinals of the edge samples, ascending.
    pub fn edge_samples(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).filter(|&chunk| self.edge(chunk)).map(|chunk| self.samples(chunk).end - 1)
    }

    /// The ordinal of the first sample of `chunk`; of the last chunk's end, the number of samples.
    fn first_of(&self, chunk: u64) -> u64 {
        let chunk = to_usize(chunk);
        // The end of a list of whole groups has no group of its own.
        let group = (chunk / GROUP).min(self.first.len().saturating_sub(1));
        let before = self.counts.get(group * GROUP * self.width..chunk * self.width).unwrap_or_default();
        self.first.get(group).map_or(0, |first| first.saturating_add(sum_of(before, self.width)))
    }

    fn count(&self, chunk: usize) -> u64 {
        self.counts.get(chunk * self.width..(chunk + 1) * self.width).map_or(0, little_endian)
    }
}

fn sum_of(counts: &[u8], width: usize) -> u64 {
    match width {
        // The usual ones, without a loop for each number.
        1 => counts.iter().map(|&count| u64::from(count)).sum(),
        2 => counts.as_chunks().0.iter().map(|&count| u64::from(u16::from_le_bytes(count))).sum(),
        _ => counts.chunks_exact(width).map(little_endian).fold(0, u64::saturating_add),
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
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
        let list = ChunkList::of(vec![2, 0, 3], 1, vec![0b101]).unwrap();
        let older = list.clone().truncated(2);
        assert_eq!((older.len(), older.samples(0), older.samples(2)), (2, 0..2, 0..0));
        assert_eq!(older.edge_samples().collect::<Vec<_>>(), [1]);
        assert!(!older.edge(2));
        assert_eq!(list.truncated(9).edge_samples().collect::<Vec<_>>(), [1, 4]);
    }

    /// CHK-1, CHK-2
    #[test]
    fn every_chunk_has_the_samples_that_a_running_sum_gives_it() {
        for width in [1, 2, 4, 8] {
            for chunk_count in [1_u64, 15, 16, 17, 32, 100] {
                let count_of = |chunk: u64| chunk * 37 % 11 * if width > 1 { 1000 } else { 1 };
                let bytes = (0..chunk_count).flat_map(|chunk| count_of(chunk).to_le_bytes().into_iter().take(width));
                let list = ChunkList::of(bytes.collect(), width, vec![]).unwrap();
                let mut start = 0;
                for chunk in 0..chunk_count {
                    assert_eq!(list.samples(chunk), start..start + count_of(chunk), "chunk {chunk} of {chunk_count}");
                    start += count_of(chunk);
                }
                assert_eq!((list.len(), list.first_of(chunk_count)), (chunk_count, start));
                assert_eq!(list.samples(chunk_count), 0..0);
            }
        }
    }

    #[test]
    fn counts_that_do_not_fit_64_bits_saturate() {
        let list = ChunkList::of(vec![0xFF; 24], 8, vec![]).unwrap();
        assert_eq!(list.samples(2), u64::MAX..u64::MAX);
    }
}
