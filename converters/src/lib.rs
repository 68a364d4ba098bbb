//! Turns what people have into grainstore datasets.
//!
//! A [`Source`](grainstore_sources::Source) is foreign data, seen as parts of samples. [`convert`] packs it, [`append`]
//! adds it to a dataset, [`adopt`] leaves it where it is and makes an index. This crate decides in which order samples are
//! stored; what a sample is made of is the source's business, and how it becomes durable the writer's.
//!
//! ```
//! use grainstore_converters::{ConvertOptions, NoEvents, convert};
//! use grainstore_sources::folder::{FolderOptions, FolderSource};
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
mod convert;
mod destination;
mod duplicates;
mod error;
mod events;
mod feed;
mod options;
mod packer;
mod random;
mod relabelled;
mod window;

pub use adopt::{AdoptOptions, AdoptSummary, adopt};
pub use append::append;
pub use convert::{ConvertSummary, check_kept, convert};
pub use destination::check_destination;
pub use error::ConvertError;
pub use events::{Events, NoEvents, Progress};
pub use feed::Mixing;
pub use options::{ConvertOptions, OnBad, OnDuplicate, OnKept, Order};
pub use random::hash_seed;

/// The example of docs/library.md compiles.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct Readme;
