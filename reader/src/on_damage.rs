//! What an epoch does about samples that cannot be read, or whose bytes are damaged.

use std::sync::Arc;

use crate::ReadError;

/// What an epoch does about a sample that cannot be read, or whose bytes are damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDamage {
    /// It ends with an error that names the sample.
    #[default]
    Fail,
    /// It continues without it: the batch is shorter by one and reports it, and the number of batches stays the same.
    ///
    /// This is only for what is wrong with a sample. A missing file, a device that does not answer, a damaged index or
    /// lack of memory still end the epoch.
    Skip,
}

/// A sample that is missing from a batch.
#[derive(Clone, Debug)]
pub struct SkippedSample {
    /// Its ordinal.
    pub ordinal: u64,
    /// Its position in the epoch.
    pub position: u64,
    /// What is wrong with it, and where.
    pub error: Arc<ReadError>,
}
