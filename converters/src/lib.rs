//! Turns what people have into grainstore datasets.
//!
//! A [`Source`] is somebody's data, seen as parts of samples: a folder ([`folder::FolderSource`]), files of TFRecord, tar,
//! LMDB, Parquet, a [`list`] of places in files, or a stream. [`open_source`] opens any of them, [`convert`] packs it,
//! [`append`] adds it to a dataset, [`adopt`] leaves it where it is and makes an index. This crate decides what a sample
//! is made of and in which order samples are stored; where their bytes lie and how they become durable is the writer's
//! business.
//!
//! ```
//! use grainstore_converters::folder::{FolderOptions, FolderSource};
//! use grainstore_converters::{ConvertOptions, NoEvents, convert};
//!
//! let place = tempfile::tempdir()?;
//! let photos = place.path().join("photos");
//! std::fs::create_dir_all(photos.join("cat"))?;
//! std::fs::write(photos.join("cat/1.jpg"), b"not really a picture")?;
//!
//! let source = FolderSource::open(&photos, &FolderOptions::default())?;
//! let dataset = place.path().join("photos.grain");
//! let summary = convert(&source, &dataset, &ConvertOptions::default(), &NoEvents)?;
//! assert_eq!(summary.written.samples, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same source, order, seed and options give the same bytes, whatever the number of threads and the machine.
#![forbid(unsafe_code)]

mod adopt;
mod append;
pub mod compressed;
mod convert;
mod destination;
mod duplicates;
mod error;
mod feed;
pub mod folder;
pub mod list;
pub mod lmdb;
mod mapping;
mod packer;
pub mod parquet;
mod passed_over;
mod random;
mod recognise;
mod regular;
mod relabelled;
pub mod shards;
mod source;
mod sources;
pub mod stream;
mod table;
pub mod tar;
pub mod tfrecord;
mod window;

pub use adopt::{AdoptOptions, AdoptSummary, adopt};
pub use append::append;
pub use convert::{ConvertOptions, ConvertSummary, OnBad, OnKept, Order, check_kept, convert};
pub use destination::check_destination;
pub use duplicates::OnDuplicate;
pub use error::ConvertError;
pub use feed::Mixing;
pub use mapping::{Mapping, MappingError};
pub use random::hash_seed;
pub use recognise::{Format, Recognised, recognise};
pub use source::{
    Bad, Block, BlockBuilder, Blocks, Events, Item, Layout, NoEvents, Part, Place, Progress, Reach, Samples, Skipped,
    Source, WHOLE_LEN_MAX,
};
pub use sources::{From, SourceOptions, open_source};

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
