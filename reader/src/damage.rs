//! What an epoch does about samples that cannot be read, or whose bytes are damaged.

use std::sync::Arc;

use crate::ReadError;

/// What an epoch does about a sample that cannot be read, or whose bytes are damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDamage {
    /// It ends with an error that names the sample.
    #[default]
    Fail,
    /// It goes on without it: the batch is shorter by it and says so, and the number of batches stays the same.
    ///
    /// Only for what is wrong with a sample. A file that is gone, a device that does not answer, a damaged index or no
    /// memory end the epoch all the same.
    Skip,
}

/// A sample that a batch lacks.
#[derive(Clone, Debug)]
pub struct SkippedSample {
    /// Its ordinal.
    pub ordinal: u64,
    /// Its position in the epoch.
    pub position: u64,
    /// What is wrong with it, and where.
    pub error: Arc<ReadError>,
}
