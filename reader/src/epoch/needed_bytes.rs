//! Which bytes the samples of a unit need.
//!
//! Consecutive samples are one read. Where only some of an extent's samples are wanted, they are read with the gaps
//! between them as long as the gaps are not longer than the samples: a device is quicker with one long read than with
//! many short ones. Where the samples are under half of the bytes, only they are read, neighbours together. A sample
//! counts as one block at least: many small ones are read with all gaps, and not located one by one.

use std::ops::Range;

use grainstore_store::{Collection, Location};

use super::walk::VisitedSamples;
use crate::ReadError;
use crate::byte_range::ByteRange;
use crate::engine::BLOCK_LEN;
use crate::plan::{Extents, Subset};

/// The reads that fetch the samples, ascending by offset; one at least.
pub(super) fn ranges_of(
    dataset: &Collection,
    extents: &Extents,
    samples: &VisitedSamples,
) -> Result<Vec<ByteRange>, ReadError> {
    let mut ranges = Vec::new();
    match samples {
        VisitedSamples::One(ordinal) => ranges.push(ByteRange::of_sample(&dataset.locate(*ordinal)?)),
        VisitedSamples::Consecutive(indices) => append_indices(dataset, extents, indices.clone(), &mut ranges)?,
        VisitedSamples::Piece(visits) if visits.is_whole() && !extents.has_repeats() => {
            let indices: Vec<Range<u64>> = visits.piece.ranges().collect();
            match indices.as_slice() {
                // A whole extent that is rotated has two ranges that touch: it is one read.
                [head, wrapped] if wrapped.end == head.start => {
                    append_indices(dataset, extents, wrapped.start..head.end, &mut ranges)?;
                }
                _ => {
                    for indices in indices {
                        append_indices(dataset, extents, indices, &mut ranges)?;
                    }
                }
            }
        }
        VisitedSamples::Piece(visits) => {
            let mut indices = visits.indices();
            indices.sort_unstable();
            let mut ordinals: Vec<u64> = indices.into_iter().map(|index| extents.ordinal(index)).collect();
            ordinals.dedup();
            append_ordinals(dataset, &ordinals, &mut ranges)?;
        }
    }
    // A piece may wrap at the end of its extent.
    ranges.sort_unstable_by_key(|range| (range.offset, range.len));
    Ok(ranges)
}

/// Appends the reads that fetch all of an extent that the subset wants; without a subset, all of the extent.
pub(super) fn append_wanted(
    dataset: &Collection,
    ordinals: Range<u64>,
    subset: Option<&Subset>,
    ranges: &mut Vec<ByteRange>,
) -> Result<(), ReadError> {
    match subset {
        Some(subset) => append_ordinals(dataset, &subset.ordinals_in(ordinals).collect::<Vec<u64>>(), ranges),
        None => {
            ranges.push(ByteRange::of_samples(dataset, &ordinals)?);
            Ok(())
        }
    }
}

/// Appends the reads of consecutive indices.
fn append_indices(
    dataset: &Collection,
    extents: &Extents,
    indices: Range<u64>,
    ranges: &mut Vec<ByteRange>,
) -> Result<(), ReadError> {
    if extents.subset().is_none() {
        ranges.push(ByteRange::of_samples(dataset, &indices)?);
        return Ok(());
    }
    let mut ordinals: Vec<u64> = extents.ordinals(indices).collect();
    ordinals.dedup();
    append_ordinals(dataset, &ordinals, ranges)
}

/// Appends the reads of ascending ordinals, all different.
fn append_ordinals(dataset: &Collection, ordinals: &[u64], ranges: &mut Vec<ByteRange>) -> Result<(), ReadError> {
    let (Some(&first), Some(&last)) = (ordinals.first(), ordinals.last()) else { return Ok(()) };
    let all = ByteRange::of_samples(dataset, &(first..last + 1))?;
    // A sample by itself is a block at least. So the many small ones of an extent need not be located one by one.
    if (ordinals.len() as u64).saturating_mul(2 * BLOCK_LEN as u64) >= all.len {
        ranges.push(all);
        return Ok(());
    }
    let mut locations = Vec::new();
    dataset.locate_batch(ordinals, &mut locations)?;
    let wanted_len = locations.iter().map(|location| location.stored_len).fold(0, u64::saturating_add);
    if wanted_len.saturating_mul(2) >= all.len {
        ranges.push(all);
    } else {
        append_joined(&locations, ranges);
    }
    Ok(())
}

/// Appends a read for each sample; neighbours share one.
fn append_joined(locations: &[Location], ranges: &mut Vec<ByteRange>) {
    let first_own = ranges.len();
    for location in locations {
        let range = ByteRange::of_sample(location);
        if let Some(before) = ranges.get_mut(first_own..).and_then(<[ByteRange]>::last_mut)
            && let Some(joined) = before.joined(&range)
        {
            *before = joined;
        } else {
            ranges.push(range);
        }
    }
}
