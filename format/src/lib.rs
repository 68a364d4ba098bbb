//! The on-disk format of grainstore: pure layout, no I/O, no threads, no unsafe.
//!
//! Every structure has a raw form, whose layout is proved at compile time, and a checked form, which is made only by
//! `decode` (from disk) or `new` (from the writer). Nothing read from disk is trusted. The numbered rules are in
//! `spec.md`.
//!
//! ```
//! use grainstore_format::{Entry, EntryFields};
//!
//! let entry = Entry::new(EntryFields { segment: 3, offset: 4096, stored_len: 110_000, crc: 7, lz4: false })?;
//! assert_eq!((entry.segment(), entry.offset()), (3, 4096));
//! # Ok::<(), grainstore_format::FormatError>(())
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!("grainstore runs on 64-bit little-endian hosts only (x86-64, aarch64)");

mod attribute;
mod bitmap;
mod categories;
mod checksums;
mod choice;
mod chunks;
mod directory;
mod entry;
mod error;
mod external;
mod field_type;
mod fingerprint;
mod footer;
mod geometry;
mod header;
mod json;
mod keys;
mod long;
mod manifest;
mod manifest_start;
pub mod memory;
mod metadata;
mod names;
mod narrow_float;
mod remedy;
mod schema;
mod section;
mod segments;
mod splitmix;
mod text;
mod url;
mod user_metadata;
mod varint;

pub use attribute::{AttributeType, AttributeValue};
pub use bitmap::{Bitmap, BitmapBuilder};
pub use categories::{Categories, push_category};
pub use checksums::{CHECKSUM_PAGE_LEN, ChecksumBuilder, ChecksumList};
pub use choice::{UnknownName, choice_of};
pub use chunks::{ChunkList, width_of_count};
pub use directory::{Directory, DirectoryCounts};
pub use entry::{Entry, EntryFields, LONG_STORED_LEN, MAX_OFFSET, StoredLen};
pub use error::FormatError;
pub use external::{PathReach, external_path_reach, modified_ns};
pub use field_type::{FieldType, Shape};
pub use fingerprint::{DatasetFingerprint, Fingerprint, data_fingerprint, data_fingerprint_of};
pub use footer::Footer;
pub use geometry::{Alignment, AlignmentBytes, BLOCK_LEN, ChunkSize, Geometry, chunk_count, round_up, to_usize};
pub use header::{FileKind, Header};
pub use keys::{KeyGeometry, KeyGroups, MAX_KEY_LEN, SLOT_LEN, hash48, push_key, split_key};
pub use long::LongTable;
pub use manifest::{Generation, IndexRef, Manifest, SegmentKind, SegmentRef};
pub use metadata::Metadata;
pub use names::CLASS_NAMES;
pub use narrow_float::{nearest_bfloat16, nearest_float16};
pub use remedy::{EpochSetting, Remedy, SourceSetting};
pub use schema::{Attribute, Field, Schema};
pub use section::{FIRST_ANCILLARY_KIND, MAX_SECTIONS, SectionKind, SectionRecord};
pub use segments::{SegmentRecord, SegmentTable};
pub use splitmix::{MIX_STEP, SplitMix64, finalise, mix};
pub use text::{escape_bytes, escape_controls, escape_json, shown_key, shown_names, shown_path};
pub use url::UrlPath;
pub use user_metadata::UserMetadata;

/// The version of the format that this crate reads and writes.
pub const VERSION: u32 = 0;

/// Samples of more than this many raw bytes (64 MiB) are stored raw. spec.md: RAW-2, SMP-1.
pub const MAX_LZ4_RAW_LEN: u64 = 64 << 20;

/// Most samples of a dataset.
pub const MAX_SAMPLES: u64 = 1 << 40;

/// Most segments of a dataset.
pub const MAX_SEGMENTS: u64 = 1 << 20;
