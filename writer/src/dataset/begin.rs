//! The ways to begin: a new dataset, one that an interrupted writer left, or more samples for an existing one.

use std::path::Path;
use std::sync::Arc;

use grainstore_format::{Schema, escape_bytes};

use super::DatasetWriter;
use crate::commit::PartialDirectory;
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
    /// If `target` exists (unless it is a dataset and `overwrite` is set), or files cannot be written.
    pub fn create(target: impl AsRef<Path>, options: WriterOptions) -> Result<Self, WriteError> {
        Self::create_on(Arc::new(DiskStorage), target.as_ref(), options)
    }

    /// Begins the dataset `target` on `storage`.
    ///
    /// # Errors
    /// As [`DatasetWriter::create`].
    pub fn create_on(storage: Arc<dyn Storage>, target: &Path, options: WriterOptions) -> Result<Self, WriteError> {
        Self::create_with(storage, target, options, None)
    }

    /// Begins the dataset `target` with a journal. If this writer fails or is dropped after a finished segment, it
    /// leaves `target.partial` for [`DatasetWriter::resume`]. `stamp` is a text that names the source of the samples,
    /// and everything that decides which samples they are and in which order.
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

    /// Resumes the dataset `target` that an interrupted writer with a journal left, again with a journal. The caller
    /// writes the samples after [`ResumePoint::samples`], and the result has the bytes that an uninterrupted writer
    /// would have written. If nothing was left it starts a new dataset, and returns no point.
    ///
    /// # Errors
    /// As [`DatasetWriter::create`]; `ResumeMismatch` if the stamp, or an option that decides the bytes, differs;
    /// `Damaged` if the journal is damaged. What was left is not changed then.
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
        let mut partial = PartialDirectory::take_over(&storage, target, options.overwrite)?;
        let path = partial.path().join(JOURNAL_NAME);
        let mut segments = Vec::new();
        let mut point = None;
        if storage.kind(&path).map_err(WriteError::io("look at", &path))?.is_some() {
            let taken_up = journal.take_up(storage.as_ref(), partial.path())?;
            segments = taken_up.0;
            point = Some(taken_up.1).filter(|point| point.samples > 0);
        }
        if point.is_some() {
            let names = segments.iter().map(|segment| segment.name.as_str());
            partial.clear_but(&names.chain([JOURNAL_NAME]).collect::<Vec<_>>())?;
        } else {
            partial.clear()?;
            journal.forget();
        }
        let spec = IndexSpec::of(&options);
        let mut writer = Self::assemble(storage, options, spec, pool, TargetDirectory::New(partial));
        writer.finished = point.as_ref().map_or(0, |point| point.samples);
        writer.taken = writer.finished;
        writer.segments = segments;
        writer.journal = Some(journal);
        Ok((writer, point))
    }

    /// Adds samples to the dataset `dataset`, a directory with a manifest, as a new generation. The dataset does not
    /// change before [`DatasetWriter::finish`], or if anything fails; readers that opened it continue to work.
    ///
    /// # Errors
    /// `NotExtendable` if it is not a dataset's directory, or `options` have metadata of another schema; `Locked` if
    /// another writer has locked it; `Damaged` if its manifest or an index is damaged.
    pub fn append(dataset: impl AsRef<Path>, options: AppendOptions) -> Result<Self, WriteError> {
        Self::append_on(Arc::new(DiskStorage), dataset.as_ref(), options)
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
            metadata.encode()?; // invalid metadata is refused before anything is written
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
        options.metadata.encode()?; // invalid metadata is refused before anything is written
        let partial = PartialDirectory::create(&storage, target, options.overwrite)?;
        let spec = IndexSpec::of(&options);
        Ok(Self { journal, ..Self::assemble(storage, options, spec, pool, TargetDirectory::New(partial)) })
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

/// The differences between the schema of new samples and that of the dataset, all of them: one is mended at a time, and
/// finding the next one costs another look at the source.
fn difference(dataset: &Schema, new: &Schema) -> Option<String> {
    let has = items(dataset);
    let gets = items(new);
    if has == gets {
        return None;
    }
    let only_in = |these: &[String], others: &[String]| -> Vec<String> {
        these.iter().filter(|item| !others.contains(item)).cloned().collect()
    };
    let missing = only_in(&has, &gets);
    let added = only_in(&gets, &has);
    if missing.is_empty() && added.is_empty() {
        let (has, gets) = (has.join(", "), gets.join(", "));
        return Some(format!("the order of the schema differs: it has {has}; the new samples have {gets}"));
    }
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!("it has {}, the new samples do not", missing.join(", ")));
    }
    if !added.is_empty() {
        parts.push(format!("the new samples have {}, it does not", added.join(", ")));
    }
    Some(format!("another schema: {}", parts.join("; ")))
}

fn items(schema: &Schema) -> Vec<String> {
    let item = |what: &str, name: &str, kind: &str| {
        format!("{what} \"{}\" ({})", escape_bytes(name.as_bytes()), escape_bytes(kind.as_bytes()))
    };
    let attributes = schema.attributes().iter().map(|found| item("attribute", &found.name, found.kind.name()));
    let fields = schema.fields().iter().map(|found| item("field", &found.name, &found.kind.name()));
    attributes.chain(fields).collect()
}
