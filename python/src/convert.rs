//! Packing and adopting existing data, and deleting samples: the functions `convert`, `append`, `adopt`, `delete`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Once};

use grainstore_converters::{
    AdoptOptions, ConvertError, ConvertOptions, ConvertSummary, Coverage, Deletion, Doomed, Events, OnBad, OnKept,
    Order, Progress, SameContent, check_destination, check_kept, nothing_added,
};
use grainstore_format::{Alignment, ChunkSize, Schema};
use grainstore_reader::Expression;
use grainstore_sources::attributes::{AttributeTable, with_attributes};
use grainstore_sources::folder::FolderLabels;
use grainstore_sources::folder::listing::OnUnreadable;
use grainstore_sources::{Description, From, Mapping, NotPacked, Remark, Skipped, Source, SourceOptions, open_source};
use grainstore_writer::{Compression, Summary, existing};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::argument::{choice, parsed, paths as paths_of};
use crate::error::Raised;
use crate::hint::with_hint;
use crate::mapping::{PythonMap, TransformArguments};
use crate::progress::{BackgroundJob, News, run};

/// Reports the progress of a conversion to a job.
struct ConvertEvents<'a> {
    job: &'a BackgroundJob,
    /// What runs the user's function, where there is one.
    map: Option<&'a PythonMap<'a>>,
}

impl ConvertEvents<'_> {
    fn report(&self, stage: &'static str, progress: Progress) {
        let Progress { samples, samples_total, bytes, source_bytes } = progress;
        self.job.report(News { stage, samples, samples_total, bytes, bytes_total: source_bytes });
    }
}

impl Events for ConvertEvents<'_> {
    fn on_scan(&self, progress: Progress) {
        self.report("scanning", progress);
    }

    fn on_progress(&self, progress: Progress) {
        self.report("packing", progress);
    }

    fn on_finish(&self) {
        self.job.update(|news| news.stage = "finishing");
    }

    fn cancelled(&self) -> bool {
        self.job.cancelled() || self.map.is_some_and(PythonMap::has_failed)
    }
}

/// The description of a source, as Python arguments.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SourceArguments {
    format: String,
    map: Option<String>,
    raw: bool,
    database: Option<String>,
    values: String,
    labels: Option<PathBuf>,
    no_labels: bool,
    only: Vec<String>,
    exclude: Vec<String>,
    categories: Vec<String>,
    subset: Option<String>,
    allow_external: bool,
    attributes: Option<PathBuf>,
    attributes_key: String,
}

impl SourceArguments {
    /// The table of attributes by key, if one is named.
    fn table(&self) -> Result<Option<Arc<AttributeTable>>, Raised> {
        let read = |path: &PathBuf| AttributeTable::read(path, &self.attributes_key).map(Arc::new);
        self.attributes.as_ref().map(read).transpose().map_err(Raised::from)
    }

    fn options(&self, skip_bad: bool) -> Result<SourceOptions, Raised> {
        Ok(SourceOptions {
            from: match choice("format", &self.format)? {
                From::Stream => {
                    return Err(Raised::option("format is \"stream\": the command alone reads standard input"));
                }
                from => from,
            },
            map: self.map.as_deref().map(parsed::<Mapping>).transpose()?.unwrap_or_default(),
            raw: self.raw,
            database: self.database.clone(),
            values: choice("values", &self.values)?,
            labels: self.labels.clone(),
            folder_labels: if self.no_labels { FolderLabels::Ignored } else { FolderLabels::Found },
            only: self.only.clone(),
            exclude: self.exclude.clone(),
            categories: self.categories.clone(),
            subset: self.subset.as_deref().map(parsed::<Expression>).transpose()?,
            allow_external: self.allow_external,
            on_unreadable: if skip_bad { OnUnreadable::Skip } else { OnUnreadable::Stop },
            jobs: None,
            stopped: None,
        })
    }
}

/// The packing options, as Python arguments.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PackArguments {
    order: String,
    seed: u64,
    limit: Option<u64>,
    skip_bad: bool,
    on_duplicate: String,
    dedupe: bool,
    compress: Option<String>,
    segment_bytes: u64,
    jobs: Option<usize>,
}

impl PackArguments {
    fn options(&self) -> Result<ConvertOptions, Raised> {
        Ok(ConvertOptions {
            order: choice::<Order>("order", &self.order)?.with_seed(self.seed),
            limit: self.limit,
            on_bad: if self.skip_bad { OnBad::Skip } else { OnBad::Stop },
            on_duplicate: choice("on_duplicate", &self.on_duplicate)?,
            skip_same_content: self.dedupe,
            seed: self.seed,
            segment_size: self.segment_bytes,
            compression: compression(self.compress.as_deref())?,
            jobs: jobs(self.jobs)?,
            ..ConvertOptions::default()
        })
    }
}

pub(crate) fn compression(name: Option<&str>) -> Result<Compression, Raised> {
    let Some(name) = name else { return Ok(Compression::None) };
    match choice("compress", name)? {
        Compression::None => Err(Raised::option("compress is \"none\", expected None or \"lz4\"")),
        compression => Ok(compression),
    }
}

pub(crate) fn jobs(count: Option<usize>) -> Result<Option<NonZeroUsize>, Raised> {
    let zero = || Raised::option("jobs is 0, expected 1 or more");
    count.map(|count| NonZeroUsize::new(count).ok_or_else(zero)).transpose()
}

pub(crate) fn chunk_size(bytes: u64) -> Result<ChunkSize, Raised> {
    ChunkSize::new(bytes).map_err(|error| Raised::option(format!("chunk_bytes: {error}")))
}

pub(crate) fn alignment(name: &str) -> Result<Alignment, Raised> {
    Alignment::from_str(name).map_err(|error| Raised::option(format!("align: {error}")))
}

/// A finished conversion.
struct ConversionResult {
    written: Summary,
    skipped: Vec<Skipped>,
    left_out: u64,
    duplicates: u64,
    same_content: SameContent,
    resumed: u64,
    kind: String,
    notes: Vec<Remark>,
    warnings: Vec<Remark>,
    not_packed: NotPacked,
}

/// Remarks of a source, with hints that name Python arguments.
fn texts(remarks: Vec<Remark>) -> Vec<String> {
    remarks.into_iter().map(text).collect()
}

fn text(remark: Remark) -> String {
    with_hint(remark.text, remark.remedy.as_deref())
}

impl ConversionResult {
    fn of(source: &dyn Source, written: Summary, skipped: Vec<Skipped>) -> Self {
        let Description { kind, notes, warnings, not_packed, .. } = source.description().clone();
        let kind = kind.to_owned();
        let same_content = SameContent::default();
        Self {
            written,
            skipped,
            left_out: 0,
            duplicates: 0,
            same_content,
            resumed: 0,
            kind,
            notes,
            warnings,
            not_packed,
        }
    }

    /// An append of a source without samples, which is no failure.
    fn nothing(dataset: &Path, why: &ConvertError) -> Result<Self, ConvertError> {
        Ok(Self {
            written: nothing_added(dataset)?,
            skipped: Vec::new(),
            left_out: 0,
            duplicates: 0,
            same_content: SameContent::default(),
            resumed: 0,
            kind: String::new(),
            notes: vec![Remark::from(why.to_string())],
            warnings: Vec::new(),
            not_packed: NotPacked::default(),
        })
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let summary = PyDict::new(py);
        summary.set_item("source", self.kind)?;
        summary.set_item("samples", self.written.samples)?;
        summary.set_item("segments", self.written.segments)?;
        summary.set_item("payload_bytes", self.written.payload_bytes)?;
        summary.set_item("stored_bytes", self.written.stored_bytes)?;
        summary.set_item("fingerprint", self.written.fingerprint.to_string())?;
        let skipped = self.skipped.into_iter().map(|one| (one.path.to_string_lossy().into_owned(), text(one.why)));
        summary.set_item("skipped", PyList::new(py, skipped.collect::<Vec<_>>())?)?;
        summary.set_item("left_out", self.left_out)?;
        summary.set_item("duplicates", self.duplicates)?;
        let SameContent { samples, with_other_attributes } = self.same_content;
        summary.set_item("content_duplicates", samples)?;
        summary.set_item("content_duplicates_with_other_attributes", with_other_attributes)?;
        summary.set_item("left_out_keys", self.not_packed.keys)?;
        summary.set_item("left_out_files", self.not_packed.files)?;
        summary.set_item("resumed_samples", self.resumed)?;
        summary.set_item("notes", texts(self.notes))?;
        summary.set_item("warnings", texts(self.warnings))?;
        Ok(summary)
    }
}

/// A panic of the Parquet decoder is raised as an exception; its own message means nothing to the user.
fn silence_contained_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !grainstore_sources::parquet::is_contained() {
                default_hook(panic);
            }
        }));
    });
}

/// Pack the data at `sources` into the dataset `destination`.
#[pyfunction]
#[pyo3(name = "_convert", signature = (sources, destination, source, pack, *, transform, chunk_bytes, align, overwrite, resume, restart, progress))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    destination: PathBuf,
    source: SourceArguments,
    pack: PackArguments,
    transform: Option<TransformArguments>,
    chunk_bytes: u64,
    align: &str,
    overwrite: bool,
    resume: bool,
    restart: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    silence_contained_panics();
    let paths = paths_of(sources)?;
    let on_kept = match (resume, restart) {
        (true, true) => return Err(Raised::option("resume and restart exclude each other").into()),
        (true, _) => OnKept::Resume,
        (_, true) => OnKept::Restart,
        _ => OnKept::Refuse,
    };
    let source_options = source.options(pack.skip_bad)?;
    let options = ConvertOptions {
        chunk_size: chunk_size(chunk_bytes)?,
        alignment: alignment(align)?,
        overwrite,
        on_kept,
        source_words: words_of(&source_options, transform.as_ref()),
        ..pack.options()?
    };
    let made = run(py, progress, |job| {
        let check = |path: &PathBuf| check_destination(path, &destination, overwrite);
        paths.iter().try_for_each(check).and_then(|()| check_kept(&destination, on_kept)).map_err(Raised::from)?;
        let table = source.table()?;
        let source = open_source(&paths, &source_options).map_err(Raised::from)?;
        let source = with_attributes(source, table.as_ref()).map_err(Raised::from)?;
        let made = packed(source.as_ref(), transform.as_ref(), None, job, |source, events| {
            grainstore_converters::convert(source, &destination, &options, events)
        })?;
        Ok::<_, PyErr>(add_coverage(made, table.as_ref(), transform.is_some(), &destination)?)
    })?;
    made.into_dict(py)
}

/// Adds a note on rows and samples that do not match. A transform may change keys: then nothing is known of that.
fn add_coverage(
    made: ConversionResult,
    table: Option<&Arc<AttributeTable>>,
    has_transform: bool,
    destination: &Path,
) -> Result<ConversionResult, Raised> {
    let mut made = made;
    if let Some(table) = table.filter(|_| !has_transform) {
        let coverage = Coverage::of(table, destination, made.written.samples)?;
        let said = if coverage.unlike.is_some() { &mut made.warnings } else { &mut made.notes };
        said.extend(coverage.note(table).map(Remark::from));
    }
    Ok(made)
}

/// What must be the same for a conversion to resume.
fn words_of(source: &SourceOptions, transform: Option<&TransformArguments>) -> String {
    match transform {
        Some(transform) => format!("{}; {}", source.words(), transform.words),
        None => format!("{}; transform: none", source.words()),
    }
}

/// Packs the source, or what the transform makes of it, with `pack`.
fn packed(
    source: &dyn Source,
    transform: Option<&TransformArguments>,
    expected: Option<&Schema>,
    job: &BackgroundJob,
    pack: impl FnOnce(&dyn Source, &dyn Events) -> Result<ConvertSummary, ConvertError>,
) -> PyResult<ConversionResult> {
    let mut warnings = Vec::new();
    let summary = match transform {
        None => pack(source, &ConvertEvents { job, map: None }).map_err(Raised::from)?,
        Some(transform) => {
            let map = PythonMap::begin(transform, source, expected, job)?;
            let summary = pack(&map.mapped(source), &ConvertEvents { job, map: Some(&map) });
            warnings.extend(map.warnings());
            // The library reports that it was stopped; this is why.
            summary.map_err(|error| map.failure().unwrap_or_else(|| Raised::from(error).into()))?
        }
    };
    let made = ConversionResult::of(source, summary.written, summary.skipped);
    warnings.splice(0..0, made.warnings);
    Ok(ConversionResult {
        left_out: summary.left_out_count,
        duplicates: summary.duplicate_count,
        same_content: summary.same_content,
        resumed: summary.resumed_count,
        warnings,
        ..made
    })
}

/// Add the data at `sources` to the dataset `destination`, as a new generation.
#[pyfunction]
#[pyo3(name = "_append", signature = (sources, destination, source, pack, *, transform, progress))]
pub(crate) fn append<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    destination: PathBuf,
    source: SourceArguments,
    pack: PackArguments,
    transform: Option<TransformArguments>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    silence_contained_panics();
    let paths = paths_of(sources)?;
    let source_options = source.options(pack.skip_bad)?;
    let options = pack.options()?;
    let made = run(py, progress, |job| {
        let unchanged = |error: &ConvertError| ConversionResult::nothing(&destination, error).map_err(Raised::from);
        let table = source.table()?;
        let source = match open_source(&paths, &source_options).map_err(ConvertError::from) {
            Ok(source) => source,
            Err(error) if error.is_nothing_to_add() => return Ok::<_, PyErr>(unchanged(&error)?),
            Err(error) => return Err(Raised::from(error).into()),
        };
        let source = with_attributes(source, table.as_ref()).map_err(Raised::from)?;
        let present = existing(&destination).map_err(Raised::from)?;
        let mut nothing = None;
        let added =
            packed(source.as_ref(), transform.as_ref(), Some(&present.metadata.schema), job, |source, events| {
                let added = grainstore_converters::append(source, &destination, &options, events);
                if let Err(error) = &added
                    && error.is_nothing_to_add()
                {
                    nothing = Some(unchanged(error));
                }
                added
            });
        match nothing {
            Some(unchanged) => Ok(unchanged?),
            None => Ok(add_coverage(added?, table.as_ref(), transform.is_some(), &destination)?),
        }
    })?;
    made.into_dict(py)
}

/// Write only the index of a new dataset `destination`; the samples stay where they are.
#[pyfunction]
#[pyo3(name = "_adopt", signature = (sources, destination, source, *, seed, chunk_bytes, skip_bad, allow_external, jobs, overwrite, progress))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn adopt<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    destination: PathBuf,
    source: SourceArguments,
    seed: u64,
    chunk_bytes: u64,
    skip_bad: bool,
    allow_external: bool,
    jobs: Option<usize>,
    overwrite: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let paths = paths_of(sources)?;
    let source_options = source.options(skip_bad)?;
    let options = AdoptOptions {
        seed,
        chunk_size: chunk_size(chunk_bytes)?,
        on_bad: if skip_bad { OnBad::Skip } else { OnBad::Stop },
        allow_external,
        jobs: self::jobs(jobs)?,
        overwrite,
    };
    let made = run(py, progress, |job| {
        let source = open_source(&paths, &source_options)?;
        let summary =
            grainstore_converters::adopt(source.as_ref(), &destination, &options, &ConvertEvents { job, map: None })?;
        Ok::<_, Raised>(ConversionResult::of(source.as_ref(), summary.written, summary.skipped))
    })?;
    made.into_dict(py)
}

/// Delete samples of the dataset `dataset`, as a new generation without them.
#[pyfunction]
#[pyo3(name = "_delete", signature = (dataset, *, subset, keys, ordinals, dry_run, free, progress))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn delete<'py>(
    py: Python<'py>,
    dataset: PathBuf,
    subset: Option<&str>,
    keys: Option<Vec<Vec<u8>>>,
    ordinals: Option<Vec<u64>>,
    dry_run: bool,
    free: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let subset: Option<Expression> = subset.map(parsed).transpose()?;
    let doomed = match (&subset, &keys, &ordinals) {
        (Some(subset), None, None) => Doomed::Subset(subset),
        (None, Some(keys), None) => Doomed::Keys(keys),
        (None, None, Some(ordinals)) => Doomed::Ordinals(ordinals),
        (None, None, None) if free => Doomed::Nothing,
        _ => return Err(Raised::option("expected one of subset, keys and ordinals").into()),
    };
    let (deletion, summary) = run(py, progress, |job| {
        let deletion = Deletion::of(&dataset, &doomed)?;
        let found = (deletion.samples(), deletion.stored_bytes(), deletion.samples_left(), deletion.fingerprint());
        let summary = if dry_run { None } else { Some(deletion.run(free, &ConvertEvents { job, map: None })?) };
        Ok::<_, Raised>((found, summary))
    })?;
    let (deleted, deleted_bytes, samples, fingerprint) = deletion;
    let result = PyDict::new(py);
    result.set_item("deleted", deleted)?;
    result.set_item("deleted_bytes", deleted_bytes)?;
    result.set_item("samples", samples)?;
    let (copied_bytes, replaced_bytes, freed, fingerprint) = match summary {
        Some(summary) => (summary.copied_bytes, summary.replaced_bytes, summary.is_freed, summary.fingerprint),
        None => (0, 0, false, fingerprint),
    };
    result.set_item("copied_bytes", copied_bytes)?;
    result.set_item("replaced_bytes", replaced_bytes)?;
    result.set_item("freed", freed)?;
    result.set_item("fingerprint", fingerprint.to_string())?;
    Ok(result)
}
