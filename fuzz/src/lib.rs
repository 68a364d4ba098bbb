//! Properties of every parser, for the fuzzer and for the test that replays the corpus.
//!
//! Each function takes any bytes and panics where its property does not hold. Checksums are made right where the
//! bytes would otherwise never get past them. See README.md for how to run them.

mod bounded_allocator;
mod documents;
mod expression;
mod frame;
mod input;
mod lists;
mod lmdb;
mod naive_lz4;
mod open;
mod order;
mod parquet;
mod payload;
mod pictures;
pub mod seeds;
mod state;
mod strict_json;
mod table;
mod tar;
mod tfrecord;

pub use documents::{manifest, metadata};
pub use expression::subset_expression;
pub use frame::{directory, footer, header};
pub use lists::{keys, sections};
pub use lmdb::lmdb;
pub use open::open;
pub use order::plan;
pub use parquet::parquet;
pub use payload::payload;
pub use pictures::pictures;
pub use state::state;
pub use table::table;
pub use tar::{records, tar};
pub use tfrecord::tfrecord;

/// A function that panics where bytes break its property.
pub type Property = fn(&[u8]);

/// The property of every target, by the target's name.
pub const TARGETS: [(&str, Property); 19] = [
    ("header", header),
    ("footer", footer),
    ("directory", directory),
    ("manifest", manifest),
    ("metadata", metadata),
    ("keys", keys),
    ("sections", sections),
    ("payload", payload),
    ("plan", plan),
    ("subset_expression", subset_expression),
    ("open", open),
    ("lmdb", lmdb),
    ("tar", tar),
    ("records", records),
    ("tfrecord", tfrecord),
    ("parquet", parquet),
    ("table", table),
    ("pictures", pictures),
    ("state", state),
];
