//! Exports grainstore datasets to other formats: a folder of files, tar archives for WebDataset, TFRecord, LMDB and
//! Parquet.
//!
//! [`export`] takes the whole dataset or a part of it, in the order of ordinals, and writes files that the formats' own
//! libraries read. Names, bytes, attributes and (except in LMDB) the order are those of the dataset. What a format
//! cannot hold is refused before anything is written, or reported in [`ExportSummary::notes`].
//!
//! ```
//! use grainstore_export::{ExportOptions, Format, NoEvents, Selection, export};
//! use grainstore_reader::{Reader, ReaderOptions};
//! # use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
//! # let folder = tempfile::tempdir()?;
//! # let (path, out) = (folder.path().join("tiny.grain"), folder.path().join("out"));
//! # let mut writer = DatasetWriter::create(&path, WriterOptions::default())?;
//! # for key in ["a/1", "a/2", "b/1"] { writer.write(Sample::new(key, key.repeat(3).into_bytes()))?; }
//! # writer.finish()?;
//!
//! let reader = Reader::open(&path, ReaderOptions::default())?;
//! let summary = export(&reader, &Selection::all(&reader), &out, &ExportOptions::to(Format::Folder), &NoEvents)?;
//! assert_eq!((summary.samples, std::fs::read(out.join("b/1"))?), (3, b"b/1b/1b/1".to_vec()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Existing files are never changed: OUT must not exist. The output is built in OUT.partial, which is renamed when it
//! is complete and durable, and removed if the export fails.
//!
//! Memory: two groups of samples of 8 MiB for each job. An LZ4 sample of up to 64 MiB is held whole; a longer raw
//! sample is streamed. Parquet holds a row group of 64 MiB for each job, LMDB the selected keys. Payloads are not
//! decoded or changed.
#![deny(unsafe_code)]

mod columns;
mod destination;
mod error;
mod events;
mod example;
mod export;
mod fetch;
mod folder;
mod grouping;
mod index_pass;
mod job;
mod json;
mod labels;
mod lmdb;
#[allow(unsafe_code, reason = "LMDB maps its file: it is opened only here")]
mod map;
mod names;
mod options;
mod parquet;
mod payload;
mod pipeline;
mod read_groups;
mod selection;
mod shards;
mod summary;
mod tar;
mod tfrecord;
mod whole_folder;
mod workers;

pub use error::ExportError;
pub use events::{Events, NoEvents, Progress};
pub use export::export;
pub use options::{ExportOptions, Format, ParseFormatError};
pub use selection::Selection;
pub use summary::{ExportSummary, SkippedSample};
