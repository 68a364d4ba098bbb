//! The result of an export.

use grainstore_reader::ReadError;

/// What was written, and what was not.
#[derive(Debug)]
pub struct ExportSummary {
    /// Samples written.
    pub samples: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Files made; of LMDB, its one.
    pub files: u64,
    /// Samples left out since they cannot be read or are damaged, by ordinal.
    pub skipped: Vec<SkippedSample>,
    /// What the user should know of the result, as sentences; none most of the time.
    pub notes: Vec<String>,
}

/// A sample that was left out.
#[derive(Debug)]
pub struct SkippedSample {
    /// Its ordinal.
    pub ordinal: u64,
    /// What is wrong with it, and where.
    pub error: ReadError,
}
