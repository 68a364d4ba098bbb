//! The extents of a dataset: the ranges of samples that the plan shuffles. Each is usually one read.
//!
//! An extent is a contiguous range of ordinals, never empty. The samples that a chunk
//! owns are one extent, or several if there are more than 65,536 of them. A sample of 8 chunks or more, which can only
//! be the chunk's last, is an extent of its own. order.md: PLN-2.
//!
//! An extent of a subset holds the subset's samples of an extent of the dataset. Samples are then counted by index:
//! index i is the i-th smallest ordinal of the subset, repeats counted. Where it visits an extent more than 65,536 times,
//! that is several extents. Without a subset, an index is an ordinal. order.md: PLN-9.
//!
//! Extents remember where each member of several datasets starts, and, in a subset, which number each extent has in the
//! dataset: `units.rs` groups them by these numbers.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use grainstore_format::memory::{NoMemory, check_room};

use super::subset::Subset;
use super::{PlanError, in_memory};

/// The most samples that an extent holds, so that an index into an extent fits 16 bits.
pub const EXTENT_SAMPLES_MAX: u64 = 65_536;

/// Length in chunks from which a sample is an extent of its own.
pub const LONE_SAMPLE_CHUNKS: u64 = 8;

/// Bytes that an extent of a subset takes at most while it is added: 12, and those of lists that grow to twice their
/// length.
const SUBSET_EXTENT_LEN_MAX: u64 = 36;

/// The extents of a dataset or of a subset of it, 8 bytes each (12 in a subset); shared by the plans of all its epochs.
#[derive(Clone, PartialEq, Eq)]
pub struct Extents {
    /// The first index of every extent, then the sample count: ascending, starts with 0.
    first: Vec<u64>,
    /// The number of the first extent of each member, among the extents of all samples: ascending, starts with 0.
    members: Vec<u32>,
    subset: Option<ExtentsOfSubset>,
}

/// What the extents of a subset hold in addition.
#[derive(Clone, PartialEq, Eq)]
struct ExtentsOfSubset {
    subset: Arc<Subset>,
    /// The number of every extent among the extents of all samples.
    numbers: Vec<u32>,
    /// Whether several extents have one number.
    is_cut: bool,
}

impl Extents {
    /// Number of extents.
    #[must_use]
    pub fn count(&self) -> u32 {
        extent_count(&self.first)
    }

    /// The indices of one extent; never empty.
    ///
    /// # Panics
    /// If `extent` is not below [`count`](Self::count).
    #[must_use]
    pub fn samples(&self, extent: u32) -> Range<u64> {
        let extent = extent as usize;
        self.first[extent]..self.first[extent + 1]
    }

    /// The extent of an index below [`sample_count`](Self::sample_count). The caller knows that it is not before `near`.
    pub fn extent_of(&self, index: u64, near: u32) -> u32 {
        let later = &self.first[near as usize + 1..];
        let skipped = later.partition_point(|&first| first <= index);
        #[expect(clippy::cast_possible_truncation, reason = "extents are numbered with 32 bits")]
        let skipped = skipped as u32;
        near + skipped
    }

    /// The one of some neighbouring extents that has an index. The caller knows that one of them has it.
    pub(super) fn extent_among(&self, neighbours: Range<u32>, index: u64) -> u32 {
        let later = &self.first[neighbours.start as usize + 1..neighbours.end as usize];
        #[expect(clippy::cast_possible_truncation, reason = "extents are numbered with 32 bits")]
        let skipped = later.partition_point(|&first| first <= index) as u32;
        neighbours.start + skipped
    }

    /// Samples of the dataset, or visits of the subset.
    #[must_use]
    pub fn sample_count(&self) -> u64 {
        self.first[self.first.len() - 1]
    }

    /// The ordinal of the sample with an index below [`sample_count`](Self::sample_count).
    #[must_use]
    #[inline]
    pub fn ordinal(&self, index: u64) -> u64 {
        self.subset().map_or(index, |subset| subset.ordinal(index))
    }

    /// The ordinals of consecutive indices, much faster than one by one.
    pub fn ordinals(&self, indices: Range<u64>) -> impl Iterator<Item = u64> + use<'_> {
        let all = if self.subset().is_some() { 0..0 } else { indices.clone() };
        self.subset().into_iter().flat_map(move |subset| subset.ordinals_at(indices.clone())).chain(all)
    }

    /// Whether a sample has several indices.
    #[must_use]
    pub fn has_repeats(&self) -> bool {
        self.subset().is_some_and(|subset| subset.has_repeats())
    }

    /// How many smaller indices are of the same sample as an index below [`sample_count`](Self::sample_count).
    #[must_use]
    pub fn repeat(&self, index: u64) -> u64 {
        self.subset().map_or(0, |subset| subset.repeat(index))
    }

    /// Replaces `offsets` by consecutive samples of one extent, as distances from the ordinal of the first, which is
    /// returned.
    pub fn offsets_into(&self, indices: Range<u64>, offsets: &mut Vec<u16>) -> u64 {
        let base = self.ordinal(indices.start);
        offsets.clear();
        offsets.extend(self.ordinals(indices).map(|ordinal| offset_in_extent(ordinal - base)));
        base
    }

    /// The subset that these are the extents of; `None` for the whole dataset.
    #[must_use]
    pub fn subset(&self) -> Option<&Arc<Subset>> {
        self.subset.as_ref().map(|of_subset| &of_subset.subset)
    }

    /// The number of an extent among the extents of all samples: in a subset, those without a sample are counted, too.
    pub(super) fn number_in_dataset(&self, extent: u32) -> u32 {
        self.subset.as_ref().map_or(extent, |of_subset| of_subset.numbers[extent as usize])
    }

    /// Whether an extent of all samples is several of these.
    pub(super) fn is_cut(&self) -> bool {
        self.subset.as_ref().is_some_and(|of_subset| of_subset.is_cut)
    }

    /// The number of the first extent of each member, among the extents of all samples.
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }

    /// The samples that `subset` has of each extent of the dataset, without the extents of which it has none.
    ///
    /// # Errors
    /// [`PlanError::SubsetOfOther`] if the subset is of another number of samples, [`PlanError::SubsetOfSubset`] if
    /// these are extents of a subset already, [`PlanError::TooManyExtents`] if repeats make more than 32 bits can
    /// number.
    pub fn within(&self, subset: &Arc<Subset>) -> Result<Self, PlanError> {
        let expected = self.sample_count();
        let found = subset.sample_count();
        if self.subset.is_some() {
            return Err(PlanError::SubsetOfSubset);
        }
        if expected != found {
            return Err(PlanError::SubsetOfOther { expected, found });
        }
        let count_max = self.first.len() as u64 + subset.len() / EXTENT_SAMPLES_MAX;
        if u32::try_from(count_max).is_err() {
            return Err(PlanError::TooManyExtents { count: count_max });
        }
        check_room(count_max.saturating_mul(SUBSET_EXTENT_LEN_MAX))?;
        let mut first = vec![0];
        let mut numbers = Vec::new();
        let mut is_cut = false;
        let mut last = 0;
        for (number, &end) in (0..).zip(&self.first[1..]) {
            let count = subset.count_before(end);
            is_cut |= count - last > EXTENT_SAMPLES_MAX;
            while last < count {
                last = count.min(last + EXTENT_SAMPLES_MAX);
                first.push(last);
                numbers.push(number);
            }
        }
        first.shrink_to_fit();
        numbers.shrink_to_fit();
        let of_subset = ExtentsOfSubset { subset: Arc::clone(subset), numbers, is_cut };
        Ok(Self { first, members: self.members.clone(), subset: Some(of_subset) })
    }
}

fn extent_count(first: &[u64]) -> u32 {
    let count = u32::try_from(first.len() - 1);
    debug_assert!(count.is_ok(), "`ExtentsBuilder` refuses more extents than 32 bits can number");
    count.unwrap_or(u32::MAX)
}

/// A distance between two ordinals of an extent, which spans no more of them than it may have samples.
pub(super) fn offset_in_extent(distance: u64) -> u16 {
    let offset = u16::try_from(distance);
    debug_assert!(offset.is_ok(), "an extent spans 65,536 ordinals at most");
    offset.unwrap_or(u16::MAX)
}

impl fmt::Debug for Extents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Extents")
            .field("count", &self.count())
            .field("sample_count", &self.sample_count())
            .finish()
    }
}

/// Cuts a dataset into extents, chunk by chunk.
#[derive(Clone, Debug)]
pub struct ExtentsBuilder {
    first: Vec<u64>,
    members: Vec<u32>,
    lone_sample_len: u64,
}

impl ExtentsBuilder {
    /// Starts with no chunk; `chunk_size` is in bytes.
    #[must_use]
    pub fn new(chunk_size: u64) -> Self {
        Self { first: vec![0], members: vec![0], lone_sample_len: chunk_size.saturating_mul(LONE_SAMPLE_CHUNKS) }
    }

    /// Starts the next of several datasets: the following chunks are of this size, and its extents are numbered from 0
    /// where they are grouped. order.md: PLN-8.
    pub fn start_member(&mut self, chunk_size: u64) {
        self.lone_sample_len = chunk_size.saturating_mul(LONE_SAMPLE_CHUNKS);
        let count = extent_count(&self.first);
        if self.members.last() != Some(&count) {
            self.members.push(count);
        }
    }

    /// Adds the next chunk of the segment, or the first of the next segment: the number of samples
    /// it owns, and the stored length in bytes of the last of them (ignored if it owns none).
    ///
    /// Memory grows by 8 bytes for each 65,536 samples begun: the caller has checked the count
    /// against the length of the index that holds them.
    ///
    /// # Errors
    /// [`PlanError::TooManyExtents`] if the count no longer fits 32 bits, [`PlanError::NoMemory`] if there is none. The
    /// builder is then unchanged.
    pub fn chunk(&mut self, sample_count: u64, last_stored_len: u64) -> Result<(), PlanError> {
        let lone_count = u64::from(sample_count > 0 && last_stored_len >= self.lone_sample_len);
        let added = (sample_count - lone_count).div_ceil(EXTENT_SAMPLES_MAX) + lone_count;
        let count = self.first.len() as u64 - 1 + added;
        if u32::try_from(count).is_err() {
            return Err(PlanError::TooManyExtents { count });
        }
        let lack = |_| NoMemory { len: count.saturating_mul(size_of::<u64>() as u64) };
        self.first.try_reserve(in_memory(added)).map_err(lack)?;
        self.cut(sample_count - lone_count);
        self.cut(lone_count);
        Ok(())
    }

    /// The extents of the chunks so far.
    #[must_use]
    pub fn finish(mut self) -> Extents {
        self.first.shrink_to_fit();
        Extents { first: self.first, members: self.members, subset: None }
    }

    /// Cuts the next `sample_count` samples into extents. 2^32 extents of 2^16 samples: no sum reaches 2^49.
    fn cut(&mut self, sample_count: u64) {
        let start = self.first[self.first.len() - 1];
        let mut cut = 0;
        while cut < sample_count {
            cut = sample_count.min(cut + EXTENT_SAMPLES_MAX);
            self.first.push(start + cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunks: &[(u64, u64)]) -> Vec<Range<u64>> {
        let mut builder = ExtentsBuilder::new(4096);
        for &(sample_count, last_stored_len) in chunks {
            builder.chunk(sample_count, last_stored_len).unwrap();
        }
        let extents = builder.finish();
        (0..extents.count()).map(|extent| extents.samples(extent)).collect()
    }

    /// PLN-2
    #[test]
    fn a_chunk_is_an_extent_and_an_empty_one_is_none() {
        assert_eq!(cut(&[(0, 0), (3, 10), (0, 1 << 40), (2, 0), (0, 0)]), [0..3, 3..5]);
        assert!(cut(&[]).is_empty());
        assert!(cut(&[(0, 0)]).is_empty());
    }

    /// PLN-2
    #[test]
    fn a_last_sample_of_8_chunks_is_an_extent_of_its_own() {
        assert_eq!(cut(&[(3, 8 * 4096 - 1), (3, 8 * 4096), (1, u64::MAX)]), [0..3, 3..5, 5..6, 6..7]);
    }

    /// PLN-2
    #[test]
    fn no_extent_is_longer_than_65536_samples() {
        assert_eq!(cut(&[(65_536, 1), (1, 1)]), [0..65_536, 65_536..65_537]);
        assert_eq!(cut(&[(2, 1), (131_073, 1)]), [0..2, 2..65_538, 65_538..131_074, 131_074..131_075]);
        assert_eq!(cut(&[(65_537, 1 << 30)]), [0..65_536, 65_536..65_537]);
    }

    #[test]
    fn more_extents_than_fit_32_bits_are_refused_before_memory_is_taken() {
        let mut builder = ExtentsBuilder::new(4096);
        builder.chunk(5, 1).unwrap();
        let error = builder.chunk(u64::MAX, 1).unwrap_err();
        assert_eq!(error.to_string(), "dataset has 281474976710657 extents, at most 4294967295 can be planned");
        assert_eq!(builder.finish().sample_count(), 5);
    }

    #[test]
    fn a_huge_chunk_size_does_not_overflow() {
        let mut builder = ExtentsBuilder::new(u64::MAX);
        builder.chunk(2, u64::MAX - 1).unwrap();
        assert_eq!(builder.finish().count(), 1);
    }
}
