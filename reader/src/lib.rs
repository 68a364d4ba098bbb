//! Reads grainstore datasets: any sample in one I/O, any epoch in a fresh shuffled order.
//!
//! A [`Reader`] fetches samples by ordinal or key, one by one or many at once, and runs epochs: [`Reader::epoch`]
//! gives an iterator of batches whose order is a pure function ([`plan`]) of dataset, seed and epoch, and whose bytes
//! are read ahead of their need ([`engine`]) within a memory bound. Every byte that is returned has passed its
//! checksum.
//!
//! ```
//! use grainstore_reader::{EpochOptions, Reader, ReaderOptions};
//! # use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("tiny.grain");
//! # let mut writer = DatasetWriter::create(&path, WriterOptions::default())?;
//! # for key in ["a", "b", "c"] { writer.write(Sample::new(key, key.repeat(3).into_bytes()))?; }
//! # writer.finish()?;
//!
//! let reader = Reader::open(&path, ReaderOptions::default())?;
//! assert_eq!(reader.get(0)?.payload, b"aaa");
//! assert_eq!(reader.get_by_key(b"c")?.map(|sample| sample.ordinal), Some(2));
//! assert_eq!(reader.get_batch(&[2, 0, 2])?.payload(0), b"ccc");
//!
//! for number in 0..2 {
//!     // While the first epoch ends, the first batches of the second are prepared.
//!     let options = EpochOptions { seed: 7, epoch: number, followed: number < 1, ..EpochOptions::default() };
//!     let mut epoch = reader.epoch(&options)?;
//!     let mut seen = 0;
//!     for batch in epoch.by_ref() {
//!         let batch = batch?;
//!         seen += batch.ordinals().iter().zip(batch.payloads()).count();
//!     }
//!     assert_eq!((seen, epoch.stats().samples), (3, 3));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An epoch may be shared among ranks, visit a subset of the samples, and be resumed in another process:
//!
//! ```
//! use std::sync::Arc;
//! use grainstore_reader::{EpochOptions, EpochState, Expression, Reader, ReaderOptions};
//! # use grainstore_writer::{DatasetWriter, Sample, WriterOptions};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("tiny.grain");
//! # let mut writer = DatasetWriter::create(&path, WriterOptions::default())?;
//! # for i in 0..200 { writer.write(Sample::new(format!("{i}"), vec![i; 9]))?; }
//! # writer.finish()?;
//! # let reader = Reader::open(&path, ReaderOptions::default())?;
//!
//! let train: Expression = "key_hash < 0.9".parse()?;
//! let subset = Some(Arc::new(train.select_from(reader.collection())?));
//! let batch_size = 8.try_into()?;
//! let options = EpochOptions { rank: 1, world: 4, batch_size, seed: 7, subset, ..EpochOptions::default() };
//!
//! let mut epoch = reader.epoch(&options)?;
//! assert_eq!(epoch.next_batch().transpose()?.map(|batch| batch.len()), Some(8));
//! let state = epoch.state().to_string(); // one line of JSON, the same on every rank
//!
//! let resume: Option<EpochState> = Some(state.parse()?);
//! let other_world = EpochOptions { rank: 0, world: 2, resume, ..options };
//! assert_eq!(reader.epoch(&other_world)?.state().position(), 32);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It does not decode payloads into images or tensors. A sample is in memory as a whole, and twice while it is copied
//! from the read's buffer into its batch; [`Reader::stream`] reads one in parts, [`Reader::open_sample`] any parts of
//! one. Batches that have been returned belong
//! to the caller and do not count towards the memory bound. Keys, attributes and sizes come from
//! [`Reader::collection`].
//!
//! Limits: Linux and other Unix systems, 64 bits. A forked process may use the reader and the batches that it inherits;
//! an epoch belongs to the process that began it, and ends with an error elsewhere.
#![forbid(unsafe_code)]

mod access;
mod batch;
mod batch_builder;
mod batch_len;
mod byte_range;
mod check;
mod chunk_extents;
mod engine_choice;
mod engine_pool;
mod epoch;
mod error;
mod expression;
mod fields;
mod filling;
mod gather;
mod io;
mod on_damage;
mod open_files;
mod read_timeout;
mod reader;
mod residency;
mod sample;
mod sample_file;
mod single;
mod state;
mod stream;

pub use batch::Batch;
pub use engine_choice::{EngineChoice, ParseEngineError};
pub use epoch::{Epoch, EpochOptions, EpochPlan, EpochStats, Stages};
pub use error::ReadError;
pub use expression::{Expression, ExpressionError, SelectError};
pub use grainstore_engine as engine;
pub use grainstore_plan as plan;
pub use grainstore_plan::{Subset, SubsetError, Weights, WeightsError};
pub use grainstore_store::Collection;
pub use io::{Io, IoChoice, ParseIoError};
pub use on_damage::{OnDamage, SkippedSample};
pub use reader::{Reader, ReaderOptions};
pub use sample::Sample;
pub use sample_file::SampleFile;
pub use single::MappedPayload;
pub use state::{EpochState, StateError};
pub use stream::SampleStream;
