//! Turns what people have into grainstore datasets.
//!
//! A [`Source`] is somebody's data, seen as a row of samples; [`convert`] packs it. One source exists so far, a folder
//! of plain files ([`folder::FolderSource`]). This crate decides what a sample is made of and in which order samples
//! are stored; where their bytes lie and how they become durable is the writer's business.
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
//! let mut source = FolderSource::open(&photos, &FolderOptions::default())?;
//! let dataset = place.path().join("photos.grain");
//! let summary = convert(&mut source, &dataset, &ConvertOptions::default(), &NoEvents)?;
//! assert_eq!(summary.written.samples, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same source, order, seed and options give the same bytes, whatever the number of threads and the machine.
#![forbid(unsafe_code)]

mod convert;
mod destination;
mod error;
pub mod folder;
mod random;
mod source;

pub use convert::{ConvertOptions, ConvertSummary, convert};
pub use destination::check_destination;
pub use error::ConvertError;
pub use random::hash_seed;
pub use source::{Events, NoEvents, Progress, Sink, Skipped, Source, Streamed};

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
