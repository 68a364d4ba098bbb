//! The ways to begin: a new dataset, one that an interrupted writer left, or more samples for one that stands.

use std::path::Path;
use std::sync::Arc;

use grainstore_format::Schema;

use super::DatasetWriter;
use crate::commit::Workplace;
use crate::existing::check_segments;
use crate::extension::Extension;
use crate::index::IndexSpec;
use crate::journal::Journal;
use crate::names::JOURNAL_NAME;
use crate::storage::Storage;
use crate::target_directory::TargetDirectory;
use crate::{AppendOptions, DiskStorage, ResumePoint, WriteError, WriterOptions};

impl DatasetWriter {
    /// Begins the dataset `target` on this machine's disk.
    ///
    /// # Errors
    /// Where something stands there already (unless it is a dataset and is to be replaced), or cannot be written.
    pub fn create(target: &Path, options: WriterOptions) -> Result<Self, WriteError> {
        Self::create_on(Arc::new(DiskStorage), target, options)
    }

    /// Begins the dataset `target` on `storage`.
    ///
    /// # Errors
    /// As [`DatasetWriter::create`].
    pub fn create_on(storage: Arc<dyn Storage>, target: &Path, options: WriterOptions) -> Result<Self, WriteError> {
        Self::create_with(storage, target, options, None)
    }

    /// Begins the dataset `target` and keeps a journal. Dropped or failed with a finished segment, this writer leaves
    /// `target.partial` for [`DatasetWriter::resume`]. `stamp` is text that names what the samples come from, and all
    /// that decides which they are and in which order.
    ///
    /// # Errors
    /// As [`DatasetWriter::create`].
    pub fn create_journaled(target: &Path, options: WriterOptions, stamp: &str) -> Result<Self, WriteError> {
        Self::create_journaled_on(Arc::new(DiskStorage), target, options, stamp)
    }

    /// As [`DatasetWriter::create_journaled`], on `storage`.
    ///
    /// # Errors
    /// As [`DatasetWriter::create`].
    pub fn create_journaled_on(
        storage: Arc<dyn Storage>,
        target: &Path,
        options: WriterOptions,
        stamp: &str,
    ) -> Result<Self, WriteError> {
        let journal = Journal::new(&options, stamp)?;
        Self::create_with(storage, target, options, Some(journal))
    }

    /// Goes on with the dataset `target` where an interrupted writer with a journal left it, with a journal. The caller
    /// gives it the samples after [`ResumePoint::samples`], and the result has the bytes that an uninterrupted writer would
    /// have written. Where nothing was left it begins anew, and there is no point to go on from.
    ///
    /// # Errors
    /// As [`DatasetWriter::create`]; `ResumeMismatch` where what was left has another stamp or options that decide
    /// the bytes; `Damaged` where its journal is. Then it stays as it is.
    pub fn resume(
        target: &Path,
        options: WriterOptions,
        stamp: &str,
    ) -> Result<(Self, Option<ResumePoint>), WriteError> {
        Self::resume_on(Arc::new(DiskStorage), target, options, stamp)
    }

    /// As [`DatasetWriter::resume`], on `storage`.
    ///
    /// # Errors
    /// As [`DatasetWriter::resume`].
    pub fn resume_on(
        storage: Arc<dyn Storage>,
        target: &Path,
        options: WriterOptions,
        stamp: &str,
    ) -> Result<(Self, Option<ResumePoint>), WriteError> {
        let mut journal = Journal::new(&options, stamp)?;
        let pool = start_pool(&options)?;
        let mut workplace = Workplace::take_over(&storage, target, options.overwrite)?;
        let path = workplace.path().join(JOURNAL_NAME);
        let mut segments = Vec::new();
        let mut point = None;
        if storage.kind(&path).map_err(WriteError::io("look at", &path))?.is_some() {
            let taken_up = journal.take_up(storage.as_ref(), workplace.path())?;
            segments = taken_up.0;
            point = Some(taken_up.1).filter(|point| point.samples > 0);
        }
        if point.is_some() {
            let names = segments.iter().map(|segment| segment.name.as_str());
            workplace.clear_but(&names.chain([JOURNAL_NAME]).collect::<Vec<_>>())?;
        } else {
            workplace.clear()?;
            journal.forget();
        }
        let spec = IndexSpec::of(&options);
        let mut writer = Self::assemble(storage, options, spec, pool, TargetDirectory::New(workplace));
        writer.finished = point.as_ref().map_or(0, |point| point.samples);
        writer.taken = writer.finished;
        writer.segments = segments;
        writer.journal = Some(journal);
        Ok((writer, point))
    }

    /// Adds samples to the dataset `dataset`, a directory with a manifest, as a new generation. Until
    /// [`DatasetWriter::finish`] it stands as it did, and after any failure; readers that opened it go on.
    ///
    /// # Errors
    /// `NotExtendable` where it is no dataset's directory, or `options` have metadata of another schema; `Locked` where
    /// another writer holds it; `Damaged` where its manifest or an index is.
    pub fn append(dataset: &Path, options: AppendOptions) -> Result<Self, WriteError> {
        Self::append_on(Arc::new(DiskStorage), dataset, options)
    }

    /// As [`DatasetWriter::append`], on `storage`.
    ///
    /// # Errors
    /// As [`DatasetWriter::append`].
    pub fn append_on(storage: Arc<dyn Storage>, dataset: &Path, options: AppendOptions) -> Result<Self, WriteError> {
        let extension = Extension::begin(&storage, dataset)?;
        let segments = extension.before().segments();
        let mut spec = check_segments(storage.as_ref(), extension.path(), segments, options.memory_len)?;
        if let Some(metadata) = options.metadata {
            if let Some(why) = difference(&spec.metadata.schema, &metadata.schema) {
                return Err(WriteError::NotExtendable { path: dataset.to_owned(), why });
            }
            metadata.encode()?; // what could not be read back is refused before anything is written
            spec.metadata = Arc::new(metadata);
        }
        let options = WriterOptions {
            geometry: spec.geometry,
            segment_size: options.segment_size,
            compression: options.compression,
            metadata: spec.metadata.as_ref().clone(),
            keyed: spec.keyed,
            jobs: options.jobs,
            overwrite: false,
            memory_len: options.memory_len,
        };
        let pool = start_pool(&options)?;
        Ok(Self::assemble(storage, options, spec, pool, TargetDirectory::Existing(extension)))
    }

    fn create_with(
        storage: Arc<dyn Storage>,
        target: &Path,
        options: WriterOptions,
        journal: Option<Journal>,
    ) -> Result<Self, WriteError> {
        let pool = start_pool(&options)?;
        options.metadata.encode()?; // what could not be read back is refused before anything is written
        let workplace = Workplace::create(&storage, target, options.overwrite)?;
        let spec = IndexSpec::of(&options);
        Ok(Self { journal, ..Self::assemble(storage, options, spec, pool, TargetDirectory::New(workplace)) })
    }

    fn assemble(
        storage: Arc<dyn Storage>,
        options: WriterOptions,
        spec: IndexSpec,
        pool: Arc<rayon::ThreadPool>,
        directory: TargetDirectory,
    ) -> Self {
        Self {
            segments: Vec::new(),
            finished: 0,
            open: None,
            pending: Vec::new(),
            pending_len: 0,
            prepared: Vec::new(),
            taken: 0,
            failed: false,
            spec,
            options,
            pool,
            storage,
            journal: None,
            directory,
        }
    }
}

fn start_pool(options: &WriterOptions) -> Result<Arc<rayon::ThreadPool>, WriteError> {
    let threads = options.jobs.map_or(0, |jobs| jobs.get());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map(Arc::new).map_err(|error| WriteError::Threads(error.to_string()))
}

/// In what a schema differs from the dataset's.
fn difference(dataset: &Schema, new: &Schema) -> Option<String> {
    let has = items(dataset);
    let gets = items(new);
    let nothing = || "none there".to_owned();
    let count = has.len().max(gets.len());
    let pairs = (0..count)
        .map(|at| (has.get(at).cloned().unwrap_or_else(nothing), gets.get(at).cloned().unwrap_or_else(nothing)));
    let (has, gets) = pairs.into_iter().find(|(has, gets)| has != gets)?;
    Some(format!("another schema: where it has {has}, the new samples have {gets}"))
}

fn items(schema: &Schema) -> Vec<String> {
    let attributes =
        schema.attributes().iter().map(|item| format!("attribute \"{}\" ({})", item.name, item.kind.name()));
    let fields = schema.fields().iter().map(|item| format!("field \"{}\" ({})", item.name, item.kind.name()));
    attributes.chain(fields).collect()
}
