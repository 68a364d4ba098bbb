//! Exporting a dataset, or a view of it, to other formats.

use std::path::PathBuf;

use grainstore_export::{Events, ExportOptions, Format, Progress, Selection};
use grainstore_reader::OnDamage;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::argument::parsed;
use crate::convert::jobs as jobs_of;
use crate::dataset::Dataset;
use crate::error::Raised;
use crate::progress::{BackgroundJob, News, run};
use crate::schema::ColumnRef;

struct ExportEvents<'a>(&'a BackgroundJob, u64);

impl Events for ExportEvents<'_> {
    fn on_progress(&self, progress: Progress) {
        let samples = progress.samples;
        let bytes = progress.payload_bytes;
        self.0.report(News { stage: "writing", samples, samples_total: Some(self.1), bytes, bytes_total: None });
    }

    fn on_finish(&self) {
        self.0.update(|news| news.stage = "finishing");
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

/// Write the samples of `dataset` to `destination` in the format `to`.
#[pyfunction]
#[pyo3(name = "_export", signature = (dataset, destination, to, *, shard_bytes, jobs, skip_damaged, progress))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn export<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, Dataset>,
    destination: PathBuf,
    to: &str,
    shard_bytes: Option<u64>,
    jobs: Option<usize>,
    skip_damaged: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let opened = dataset.get().shared.get()?;
    let selection = &dataset.get().selection;
    let names = &dataset.get().names;
    if !names.has_fields() {
        let what = "the view has no field, and an export needs one: name it in select_columns";
        return Err(Raised::option(what).into());
    }
    let shown = names.all().filter(|(_, column)| !matches!(column, ColumnRef::Key));
    let options = ExportOptions {
        shard_len: shard_bytes.unwrap_or(ExportOptions::DEFAULT_SHARD_LEN),
        jobs: jobs_of(jobs)?,
        on_damage: if skip_damaged { OnDamage::Skip } else { OnDamage::Fail },
        only: shown.map(|(name, _)| name.text().to_owned()).collect(),
        ..ExportOptions::to(parsed::<Format>(to)?)
    };
    let summary = run(py, progress, |job| {
        let subset = selection.for_epoch(opened.reader.collection().sample_count())?;
        if subset.as_ref().is_some_and(|subset| subset.has_repeats()) {
            return Err(Raised::option(
                "the view has a sample twice, and an export has each once: select without repeats",
            ));
        }
        let selection =
            subset.map_or_else(|| Selection::all(&opened.reader), |subset| Selection::from((*subset).clone()));
        if selection.is_empty() {
            return Err(Raised::option("the view has no samples; nothing was written"));
        }
        let events = ExportEvents(job, selection.len());
        Ok(grainstore_export::export(&opened.reader, &selection, &destination, &options, &events)?)
    })?;
    let made = PyDict::new(py);
    made.set_item("samples", summary.samples)?;
    made.set_item("payload_bytes", summary.payload_bytes)?;
    made.set_item("files", summary.files)?;
    let skipped = summary.skipped.into_iter().map(|one| (one.ordinal, one.error.to_string()));
    made.set_item("skipped", PyList::new(py, skipped.collect::<Vec<_>>())?)?;
    made.set_item("notes", summary.notes)?;
    Ok(made)
}
