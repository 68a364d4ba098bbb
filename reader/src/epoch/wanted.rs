//! Which bytes the samples of a unit need.
//!
//! Consecutive samples are one read. Where only some of an extent's samples are wanted, they are read with what lies
//! between them as long as that is not more than they are: a device is quicker with one long read than with many short
//! ones. Where they are under half of the bytes, only they are read, neighbours together. A sample counts as a block at
//! least: many small ones are read with all between them, and not looked up one by one.

use std::ops::Range;

use grainstore_store::{Collection, Location};

use super::units::Samples;
use crate::ReadError;
use crate::engine::BLOCK_LEN;
use crate::plan::{Extents, Subset};
use crate::run::Run;

/// The reads that fetch the samples, ascending by place; one at least.
pub(super) fn runs_of(dataset: &Collection, extents: &Extents, samples: &Samples) -> Result<Vec<Run>, ReadError> {
    let mut runs = Vec::new();
    match samples {
        Samples::One(ordinal) => runs.push(Run::of_sample(&dataset.locate(*ordinal)?)),
        Samples::Ranges(ranges) if extents.subset().is_none() => {
            for range in ranges {
                runs.push(Run::of_samples(dataset, range)?);
            }
        }
        Samples::Ranges(ranges) => {
            for range in ranges {
                let ordinals: Vec<u64> = extents.ordinals(range.clone()).collect();
                append_some(dataset, &ordinals, &mut runs)?;
            }
        }
        Samples::Some(indices) => {
            let ordinals: Vec<u64> = indices.iter().map(|index| extents.ordinal(*index)).collect();
            append_some(dataset, &ordinals, &mut runs)?;
        }
    }
    // A part of an extent may wrap round it.
    runs.sort_unstable_by_key(|run| (run.offset, run.len));
    Ok(runs)
}

/// Appends the reads that fetch all of an extent that the subset wants, or all of it.
pub(super) fn append_wanted(
    dataset: &Collection,
    ordinals: Range<u64>,
    subset: Option<&Subset>,
    runs: &mut Vec<Run>,
) -> Result<(), ReadError> {
    match subset {
        Some(subset) => append_some(dataset, &subset.ordinals_in(ordinals).collect::<Vec<u64>>(), runs),
        None => {
            runs.push(Run::of_samples(dataset, &ordinals)?);
            Ok(())
        }
    }
}

/// Appends the reads of ascending ordinals.
fn append_some(dataset: &Collection, ordinals: &[u64], runs: &mut Vec<Run>) -> Result<(), ReadError> {
    let (Some(&first), Some(&last)) = (ordinals.first(), ordinals.last()) else { return Ok(()) };
    let all = Run::of_samples(dataset, &(first..last + 1))?;
    // A sample by itself is a block at least. So the many small ones of an extent need not be looked up one by one.
    if (ordinals.len() as u64).saturating_mul(2 * BLOCK_LEN as u64) >= all.len {
        runs.push(all);
        return Ok(());
    }
    let mut locations = Vec::new();
    dataset.locate_batch(ordinals, &mut locations)?;
    let wanted_len = locations.iter().map(|location| location.stored_len).fold(0, u64::saturating_add);
    if wanted_len.saturating_mul(2) >= all.len {
        runs.push(all);
    } else {
        append_joined(&locations, runs);
    }
    Ok(())
}

/// Appends a read for each sample; neighbours share one.
fn append_joined(locations: &[Location], runs: &mut Vec<Run>) {
    let first_own = runs.len();
    for location in locations {
        let run = Run::of_sample(location);
        match runs.get_mut(first_own..).and_then(<[Run]>::last_mut) {
            Some(before) => match before.joined(&run) {
                Some(joined) => *before = joined,
                None => runs.push(run),
            },
            None => runs.push(run),
        }
    }
}
