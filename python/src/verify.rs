//! Checking a dataset, and rebuilding its merged index.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use grainstore_store::{Damage, DamageList, FieldCheck, VerifyOptions};
#[cfg(feature = "pictures")]
use grainstore_store::{Dataset, OpenOptions};
use grainstore_writer::{DiskStorage, Storage, WriterOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::convert::jobs as jobs_of;
use crate::error::Raised;
#[cfg(feature = "pictures")]
use crate::pictures::raised;
use crate::progress::{News, run};

/// Check every checksum and every rule of the dataset at `path`. Damage is listed, not raised: see `report["ok"]`. At
/// most 100,000 damages are listed; `report["damaged"]` counts all. With `check_images` a picture that does not decode is
/// damage, too: JPEG, PNG or WebP in `field`, if it is not the only one of bytes or called "image".
#[pyfunction]
#[pyo3(signature = (path, *, jobs=None, allow_external=false, check_images=false, field=None, progress=None))]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    path: PathBuf,
    jobs: Option<usize>,
    allow_external: bool,
    check_images: bool,
    field: Option<&str>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let threads = jobs_of(jobs)?.map(usize::from);
    let damages: Mutex<DamageList> = Mutex::default();
    let field_check = match (check_images, field) {
        (false, None) => None,
        (false, Some(_)) => return Err(Raised::option("verify: field is for check_images=True").into()),
        (true, field) => Some(image_check(&path, allow_external, field)?),
    };
    let report = run(py, progress, |job| {
        let field_check = field_check.clone();
        let options = VerifyOptions { threads, allow_external, stop: Some(job.stop()), field_check };
        let checked = AtomicU64::new(0);
        let on_progress = |bytes: u64| {
            let bytes = checked.fetch_add(bytes, Ordering::Relaxed) + bytes;
            job.report(News { stage: "checking", samples: 0, samples_total: None, bytes, bytes_total: None });
        };
        let on_damage = |damage| damages.lock().unwrap_or_else(PoisonError::into_inner).add(damage);
        Ok::<_, Raised>(grainstore_store::verify(&path, &options, &on_damage, &on_progress)?)
    })?;
    let damages = damages.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rows: PyResult<Vec<_>> = damages.into_sorted().into_iter().map(|damage| row(py, damage)).collect();
    let document = PyDict::new(py);
    document.set_item("ok", report.damaged == 0)?;
    document.set_item("samples", report.samples)?;
    document.set_item("segments", report.segments)?;
    document.set_item("checked_bytes", report.checked_bytes)?;
    document.set_item("checked_images", check_images.then_some(report.checked_fields))?;
    document.set_item("damaged", report.damaged)?;
    document.set_item("damages", PyList::new(py, rows?)?)?;
    document.set_item("notices", report.notices)?;
    Ok(document)
}

/// A check of the pictures in the field that holds them.
#[cfg(feature = "pictures")]
fn image_check(path: &Path, allow_external: bool, field: Option<&str>) -> Result<FieldCheck, Raised> {
    let dataset = Dataset::open_with(path, &OpenOptions { allow_external, ..OpenOptions::default() })?;
    let fields = dataset.schema().fields().iter().map(|field| (field.name.as_str(), &field.kind));
    let fields: Vec<_> = fields.collect();
    let number = grainstore_pictures::field_of(&fields, field).map_err(|error| raised("verify", &error))?;
    let check = |bytes: &[u8]| grainstore_pictures::check(bytes).map_err(|error| error.to_string());
    Ok(FieldCheck { field: fields[number].0.to_owned(), check: Arc::new(check) })
}

#[cfg(not(feature = "pictures"))]
fn image_check(_: &Path, _: bool, _: Option<&str>) -> Result<FieldCheck, Raised> {
    Err(Raised::option("verify: this build cannot decode pictures (feature \"pictures\")"))
}

fn row(py: Python<'_>, damage: Damage) -> PyResult<Bound<'_, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("segment", damage.segment)?;
    row.set_item("ordinal", damage.ordinal)?;
    row.set_item("key", damage.key.map(|key| PyBytes::new(py, &key)))?;
    row.set_item("offset", damage.offset)?;
    row.set_item("what", damage.what)?;
    Ok(row)
}

/// Rebuild a lost or damaged merged index from the segments.
#[pyfunction]
pub(crate) fn rebuild_index(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage);
    py.detach(|| grainstore_writer::rebuild_index(&storage, &path, WriterOptions::DEFAULT_MEMORY_LEN))
        .map_err(|error| Raised::from(error).into())
}
