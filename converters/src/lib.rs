//! Converts foreign data into grainstore datasets.
//!
//! A [`Source`](grainstore_sources::Source) is foreign data, divided into parts of samples. [`convert`] packs it,
//! [`append`] adds it to a dataset, [`adopt`] leaves it where it is and writes an index. A [`Deletion`] makes a
//! generation of a dataset without some of its samples. This crate decides in which
//! order samples are stored. The source decides what a sample is, and the writer makes it durable.
//!
//! ```
//! use grainstore_converters::{ConvertOptions, NoEvents, convert};
//! use grainstore_sources::folder::{FolderOptions, FolderSource};
//!
//! let folder = tempfile::tempdir()?;
//! let photos = folder.path().join("photos");
//! std::fs::create_dir_all(photos.join("cat"))?;
//! std::fs::write(photos.join("cat/1.jpg"), b"not really a picture")?;
//!
//! let source = FolderSource::open(&photos, &FolderOptions::default())?;
//! let dataset = folder.path().join("photos.grain");
//! let summary = convert(&source, &dataset, &ConvertOptions::default(), &NoEvents)?;
//! assert_eq!(summary.written.samples, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same source, order, seed and options give the same bytes, on any machine and with any number of threads.
#![forbid(unsafe_code)]

mod adopt;
mod append;
mod changed;
mod convert;
mod coverage;
mod delete;
mod destination;
mod duplicates;
mod error;
mod events;
mod feed;
mod fitted;
mod mapped;
mod options;
mod ordered_queue;
mod packer;
mod random;
mod relabelled;

pub use adopt::{AdoptOptions, AdoptSummary, adopt};
pub use append::{append, nothing_added};
pub use convert::{ConvertSummary, SameContent, check_kept, convert};
pub use coverage::Coverage;
pub use delete::{Deletion, Doomed};
pub use destination::check_destination;
pub use error::ConvertError;
pub use events::{Events, NoEvents, Progress};
pub use feed::Mixing;
pub use mapped::{MapSample, Mapped};
pub use options::{ConvertOptions, OnBad, OnDuplicate, OnKept, Order};
pub use random::hash_seed;

/// The example of docs/library.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct Readme;
