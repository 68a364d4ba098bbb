//! Other people's formats, read as samples: folders, TFRecord, tar, LMDB, Parquet, lists of places in files, streams.
//!
//! A [`Source`] is foreign data, seen as parts of samples. [`open_source`] opens any of them, by content and not by
//! name. A source knows one format and nothing of orders, threads, resuming and writing: that is `converters`.
//!
//! ```
//! use grainstore_sources::folder::{FolderOptions, FolderSource};
//! use grainstore_sources::{Layout, Source, SourceError, SourceSample};
//!
//! let place = tempfile::tempdir()?;
//! std::fs::create_dir(place.path().join("cat"))?;
//! std::fs::write(place.path().join("cat/1.jpg"), b"not really a picture")?;
//!
//! let source = FolderSource::open(place.path(), &FolderOptions::default())?;
//! let mut samples = source.open(0, 0, Layout::Packed).map_err(SourceError::from)?;
//! let first = samples.next().map_err(SourceError::from)?;
//! assert!(matches!(first, Some(SourceSample::Whole { sample, .. }) if sample.key == b"cat/1.jpg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod compressed;
mod error;
pub mod folder;
mod ignored;
pub mod list;
pub mod lmdb;
mod mapping;
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

pub use error::{ListingError, SourceError};
pub use mapping::{Mapping, MappingError};
pub use open::{From, SourceOptions, open_source};
pub use recognise::{Format, Recognised, recognise};
pub use remark::Remark;
pub use source::{
    Bad, BlockBuilder, Blocks, Description, Layout, Reach, RecordLocation, SampleReader, Skipped, Source, SourceBlock,
    SourcePart, SourceSample, WHOLE_LEN_MAX, stamp_of_parts,
};
