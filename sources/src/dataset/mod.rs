//! Datasets of grainstore as a source: to merge, filter, reshuffle or change them without a detour.
//!
//! A dataset's segments are the parts. Only its index is read until samples are wanted, so every sample can be read by
//! itself, in any order, and an interrupted conversion resumes where it was. Every payload passes its checksum.
//!
//! Several datasets become one. They need the same attributes and fields; the names that `label` and `split` number are
//! merged, and the numbers changed to match.

mod names;
mod ranges;
mod samples;
mod shape;
mod source;

pub use source::{DatasetOptions, DatasetSource};
