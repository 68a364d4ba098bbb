//! The seed of what a transform draws for a sample.

use grainstore_plan::SampleVisit;
use pyo3::prelude::*;

/// 128 bits to seed random number generators with, for one visit of a sample.
#[pyfunction]
#[pyo3(name = "_draw_seed", signature = (seed, epoch, ordinal, repeat = 0))]
pub(crate) fn draw_seed(seed: u64, epoch: u64, ordinal: u64, repeat: u64) -> u128 {
    SampleVisit { seed, epoch, ordinal, repeat }.draw_seed()
}
