//! Opens grainstore datasets and answers queries from their index: where a sample is stored, which ordinal a key has,
//! the values of an attribute. Also verifies datasets.
//!
//! It does not read samples in bulk or in the order of an epoch (`reader` does), and it never writes. Nothing that it
//! reads is trusted; every answer has been checked. Nothing is mapped unless [`IndexMemory::Mapped`] is chosen.
//!
//! ```no_run
//! use std::path::Path;
//!
//! let dataset = grainstore_store::Dataset::open(Path::new("imagenet.grain"))?;
//! if let Some(ordinal) = dataset.find(b"n02099601/3.jpg")? {
//!     let location = dataset.locate(ordinal)?;
//!     println!("{} at {}", dataset.segments()[location.segment].path().display(), location.offset);
//! }
//! # Ok::<(), grainstore_store::StoreError>(())
//! ```
#![deny(unsafe_code)]

mod chunk_rules;
mod collection;
mod columns;
#[allow(unsafe_code, reason = "a copy by instructions that also check")]
mod copy_crc;
mod dataset;
mod dataset_cache;
mod entry_rules;
mod error;
mod facts;
mod index;
mod keys;
mod load;
mod locate;
mod location;
mod names;
mod open;
mod opened_segment;
mod options;
mod payload;
mod segment;
mod threads;
mod verify;

pub use collection::{Collection, CollectionColumn, MergedCategories};
pub use columns::Column;
pub use copy_crc::{copy_large, copy_with_crc};
pub use dataset::Dataset;
pub use error::StoreError;
pub use facts::Facts;
pub use keys::KeyScan;
pub use location::{Encoding, Location};
pub use opened_segment::OpenedFile;
pub use options::{IndexMemory, OpenOptions};
pub use payload::{PayloadError, check_and_decode, check_stored, copy_checked, decode_into};
pub use segment::Segment;
pub use verify::{Damage, DamageList, FieldCheck, FieldRule, VerifyOptions, VerifyReport, verify};
