//! The result of an export.

use grainstore_reader::ReadError;

/// Counts of what an export wrote, and the samples that it skipped.
#[derive(Debug)]
pub struct ExportSummary {
    /// Samples written.
    pub samples: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Files written; 1 for LMDB.
    pub files: u64,
    /// Samples that were skipped because they cannot be read or are damaged, by ordinal.
    pub skipped: Vec<SkippedSample>,
    /// Sentences about the result that the user should read; usually none.
    pub notes: Vec<String>,
}

/// A sample that was skipped.
#[derive(Debug)]
pub struct SkippedSample {
    /// Its ordinal.
    pub ordinal: u64,
    /// What is wrong with it, and where.
    pub error: ReadError,
}
