//! Keys and attributes for libraries that speak Arrow: capsules of the PyCapsule interface.
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use grainstore_arrow::{ColumnError, Columns, Rows};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::dataset::Dataset;
use crate::error::Raised;
use crate::selection::Selection;

impl From<ColumnError> for Raised {
    fn from(error: ColumnError) -> Self {
        match error {
            ColumnError::Store(error) => error.into(),
            ColumnError::NoMemory(error) => error.into(),
            ColumnError::Bug(what) => Self::bug(what),
        }
    }
}

fn columns(dataset: &Dataset, rows: Rows) -> Result<Columns, Raised> {
    let opened = dataset.shared.get()?;
    let is_shown = |name: &str| dataset.names.attributes().any(|(_, (shown, _))| shown.text() == name);
    Ok(Columns::of_some(opened.reader.collection(), rows, is_shown)?)
}

/// The rows of a dataset or a view.
pub(crate) fn stream<'py>(py: Python<'py>, dataset: &Dataset) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = py.detach(|| -> Result<_, Raised> {
        let rows = match &dataset.selection {
            Selection::Range(range) => Rows::Range(range.clone()),
            selection => Rows::List(selection.ordinals_at(0..selection.len())?.into()),
        };
        Ok(columns(dataset, rows)?.stream())
    })?;
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Names and types of the columns.
pub(crate) fn schema<'py>(py: Python<'py>, dataset: &Dataset) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = py.detach(|| columns(dataset, Rows::Range(0..0)).map(|columns| columns.schema()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}
