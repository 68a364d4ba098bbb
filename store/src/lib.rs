//! Opens grainstore datasets and answers from their index: where a sample lies, which ordinal a key has, the values
//! of an attribute. Also verifies datasets.
//!
//! It knows files and what an index says. It does not read samples in bulk or in any order of an epoch (`reader`
//! does), and it never writes. Nothing that it reads is trusted; every answer was checked. Nothing is mapped unless
//! [`IndexMemory::Mapped`] is asked for.
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

mod collection;
mod columns;
mod dataset;
mod entries;
mod error;
mod facts;
mod file;
mod find;
mod find_batch;
mod free_memory;
mod index;
mod kept;
mod key_scan;
mod keys;
mod loading;
mod locate_all;
#[allow(unsafe_code, reason = "a file is mapped here, and nowhere else")]
mod map;
mod memory;
mod open;
mod payload;
mod place;
mod sample_index;
mod section;
mod segment;
mod threads;
mod verify;

pub use collection::{Collection, Columns};
pub use columns::Column;
pub use dataset::Dataset;
pub use error::StoreError;
pub use facts::Facts;
pub use free_memory::FreeMemory;
pub use key_scan::KeyScan;
pub use open::{IndexMemory, OpenOptions};
pub use payload::{PayloadError, check_and_decode, check_stored, decode_into};
pub use sample_index::{Encoding, Location};
pub use segment::Segment;
pub use verify::{Damage, VerifyOptions, VerifyReport, verify};
