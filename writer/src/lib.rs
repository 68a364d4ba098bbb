//! Packs samples into grainstore datasets: placement and durability.
//!
//! A [`DatasetWriter`] takes samples in order, checksums and compresses them in parallel, and writes them one after
//! the other, so that the same input gives the same bytes for any number of threads. The final name appears only after
//! the whole dataset is synced (spec.md, section 10). Memory is bounded by [`WriterOptions::memory_len`], not by the
//! number of samples: parts of the index spill to disk.
//!
//! A writer with a journal can be interrupted: a later one resumes after the last finished segment
//! ([`DatasetWriter::resume`]). A dataset grows by generations ([`DatasetWriter::append`]); samples are never changed. A
//! [`Removal`] makes a generation without some of them.
//! An [`ExternalWriter`] writes only an index, for samples that stay in files that grainstore does not own.
//!
//! ```
//! use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
//!
//! let folder = tempfile::tempdir()?;
//! let mut writer = DatasetWriter::create(&folder.path().join("tiny.grain"), WriterOptions::default())?;
//! writer.write(Sample::new("first", b"hello".to_vec()))?;
//! assert_eq!(writer.finish()?.samples, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod categories;
mod column;
mod commit;
mod dataset;
mod describe;
mod disk;
mod emit;
mod error;
mod existing;
mod extension;
mod external;
mod finished;
mod index;
mod journal;
mod merge;
mod names;
mod options;
mod output;
mod prepare;
mod rebuild;
mod removal;
mod rows;
mod segment;
mod sort;
mod storage;
mod target_directory;

pub use commit::{abandoned, resumable};
pub use dataset::{DatasetWriter, Summary};
pub use disk::DiskStorage;
pub use error::{StreamError, WriteError};
pub use existing::{ExistingDataset, existing, existing_on};
pub use external::{ExternalFile, ExternalSample, ExternalSegment, ExternalWriter, FinishedExternal};
pub use journal::ResumePoint;
pub use options::{AppendOptions, Compression, Sample, StreamedSample, WriterOptions};
pub use rebuild::rebuild_index;
pub use removal::{Copied, Removal, RemovalSummary};
pub use storage::{DirectoryLock, EntryKind, Storage, StorageFile};
