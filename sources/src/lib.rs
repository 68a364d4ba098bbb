//! Reads samples from other formats: folders, TFRecord, tar, LMDB, Parquet, lists of byte ranges in files, streams, and
//! datasets of grainstore.
//!
//! A [`Source`] is foreign data, divided into parts of samples. [`open_source`] opens any of them, by content and not
//! by name. A source knows one format. Orders, threads, resuming and writing are the business of `converters`.
//!
//! ```
//! use grainstore_sources::folder::{FolderOptions, FolderSource};
//! use grainstore_sources::{Layout, Source, SourceError, SourceSample};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::create_dir(folder.path().join("cat"))?;
//! std::fs::write(folder.path().join("cat/1.jpg"), b"not really a picture")?;
//!
//! let source = FolderSource::open(folder.path(), &FolderOptions::default())?;
//! let mut samples = source.open(0, 0, Layout::Packed).map_err(SourceError::from)?;
//! let first = samples.next().map_err(SourceError::from)?;
//! assert!(matches!(first, Some(SourceSample::Whole { sample, .. }) if sample.key == b"cat/1.jpg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod alike;
pub mod attributes;
mod changed;
mod chosen;
pub mod compressed;
pub mod dataset;
mod error;
pub mod folder;
mod ignored;
mod junk;
pub mod list;
pub mod lmdb;
mod mapping;
mod narrowed;
pub mod numbering;
mod open;
pub mod parquet;
mod recognise;
mod remark;
pub mod shards;
mod source;
pub mod stream;
mod table;
pub mod tar;
pub mod tfrecord;

pub use changed::with_changed_attributes;
pub use chosen::Chosen;
pub use error::{ListingError, SourceError};
pub use mapping::{Mapping, MappingError};
pub use open::{From, SourceOptions, open_source};
pub use recognise::{Format, Recognised, recognise};
pub use remark::Remark;
pub use source::{
    Bad, BlockBuilder, Blocks, Description, Layout, NotPacked, Reach, RecordLocation, SampleReader, Skipped, Source,
    SourceBlock, SourcePart, SourceSample, WHOLE_LEN_MAX, stamp_of_parts,
};
