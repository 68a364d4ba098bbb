//! The steps of an export: check everything, write beside the destination, rename to the final name.

use std::path::{Path, PathBuf};

use grainstore_format::shown_path;
use grainstore_reader::Reader;

use crate::columns::Columns;
use crate::destination::{self, OutputKind, Partial};
use crate::job::ExportJob;
use crate::lmdb::Lmdb;
use crate::parquet::Parquet;
use crate::tar::Tar;
use crate::tfrecord::TfRecord;
use crate::whole_folder::WholeFolder;
use crate::{Events, ExportError, ExportOptions, ExportSummary, Format, Selection, folder::Folder, labels, shards};

/// If at least one sample in this many is selected, the whole index is loaded: every lookup is fast then.
const LOAD_FROM_SHARE: u64 = 8;

/// Writes the selected samples to `out`, which appears when it is complete and durable.
///
/// # Errors
/// If `out` exists, the format cannot hold the samples, they cannot be read, files cannot be written, or `events` stops
/// the export. Everything that was written is removed then.
pub fn export(
    reader: &Reader,
    selection: &Selection,
    out: &Path,
    options: &ExportOptions,
    events: &dyn Events,
) -> Result<ExportSummary, ExportError> {
    // Removes a `/` at the end, which `file_name` ignores and the operating system does not.
    let out = &out.components().collect::<PathBuf>();
    let _span = tracing::info_span!("export", format = %options.format, path = %shown_path(out)).entered();
    destination::check(out)?;
    for dataset in reader.collection().members() {
        destination::check_outside(out, dataset?.path())?;
    }
    check_options(reader, selection, out, options)?;
    let columns = Columns::of(reader.collection(), options)?;
    load_index(reader, selection)?;
    let job = ExportJob::new((reader, selection, columns), out, options, events);
    let mut notes = match options.format {
        Format::Folder => in_folder(&job, Folder::plan(&job)?)?,
        Format::Lmdb => in_folder(&job, Lmdb::plan(&job)?)?,
        Format::Tar => shards::write(&job, Tar::plan(&job)?)?,
        Format::TfRecord => shards::write(&job, TfRecord::plan(&job)?)?,
        Format::Parquet => shards::write(&job, Parquet::plan(&job)?)?,
    };
    if matches!(options.format, Format::Lmdb | Format::Tar | Format::TfRecord) {
        notes.extend(labels::names_left_out(&job)?);
    }
    notes.retain(|note| !note.is_empty());
    let mut totals = job.take_totals();
    totals.skipped.sort_by_key(|skipped| skipped.ordinal);
    Ok(ExportSummary {
        samples: totals.written.samples,
        payload_bytes: totals.written.payload_bytes,
        files: totals.files,
        skipped: totals.skipped,
        notes,
    })
}

fn in_folder(job: &ExportJob<'_>, format: impl WholeFolder) -> Result<Vec<String>, ExportError> {
    let partial = Partial::create(job.out, OutputKind::Folder)?;
    let notes = format.write(job, partial.path())?;
    job.go_on()?;
    partial.rename_into_place()?;
    Ok(notes)
}

fn check_options(
    reader: &Reader,
    selection: &Selection,
    out: &Path,
    options: &ExportOptions,
) -> Result<(), ExportError> {
    if options.shard_len == 0 {
        return Err(ExportError::Unfit { what: "shard size is 0 bytes, expected 1 or more".into() });
    }
    let found = selection.sample_count();
    let expected = reader.collection().sample_count();
    if found != expected {
        let what = format!("the selection is of a dataset of {found} samples, this one has {expected}");
        return Err(ExportError::Unfit { what });
    }
    let extension = out.extension().and_then(|extension| extension.to_str());
    if let Some(packed @ ("gz" | "zst" | "xz" | "bz2" | "tgz" | "zip")) = extension {
        let why = format!("its name ends in .{packed}, but the output is not compressed");
        return Err(ExportError::BadDestination { path: out.to_path_buf(), why });
    }
    let other = Format::ALL.into_iter().find(|format| format.extension().is_some() && format.extension() == extension);
    match other {
        Some(other) if other != options.format => {
            let why = format!("its name ends in .{other}, but the format is {}", options.format);
            Err(ExportError::BadDestination { path: out.to_path_buf(), why })
        }
        _ => Ok(()),
    }
}

fn load_index(reader: &Reader, selection: &Selection) -> Result<(), ExportError> {
    let collection = reader.collection();
    let is_most = selection.len().saturating_mul(LOAD_FROM_SHARE) >= collection.sample_count();
    let loaded = if is_most { collection.load() } else { collection.load_if_small() };
    Ok(loaded?)
}
