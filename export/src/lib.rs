//! Writes grainstore datasets out again in other people's formats: a folder of files, tar archives as WebDataset reads
//! them, TFRecord, LMDB and Parquet.
//!
//! [`export`] takes the whole dataset or a part of it, in the order of ordinals, and writes what the formats' own
//! libraries read. Names, bytes, attributes and, but for LMDB, the order are those of the dataset; what a format cannot
//! hold is refused before anything is written, or said in [`ExportSummary::notes`].
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
//! Nothing that stands there already is changed: OUT must not exist. The work stands in OUT.partial, which gets its name
//! when it is whole and durable, and is removed where the export fails.
//!
//! Memory: two runs of 8 MiB for each job, LZ4 samples of up to 64 MiB each whole; a longer raw sample streams. Parquet
//! holds a row group of 64 MiB for each job, LMDB the selected keys. It does not decode or change payloads.
#![deny(unsafe_code)]

mod destination;
mod error;
mod events;
mod example;
mod export;
mod fetch;
mod folder;
mod index_pass;
mod job;
mod json;
mod labels;
mod lmdb;
#[allow(unsafe_code, reason = "LMDB maps its file: it is opened here, and nowhere else")]
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
