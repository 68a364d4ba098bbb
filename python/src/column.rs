//! One attribute of all samples of a view.

use std::sync::Arc;

use grainstore_store::Collection;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::gather;
use crate::dataset::Dataset;
use crate::error::Raised;
use crate::numpy::{self, Dtype};
use crate::schema::ColumnRef;
use crate::selection::Selection;
use crate::view::{Bytes, Memory};

/// The bytes of a column in the loaded index.
struct ColumnBytes {
    collection: Collection,
    name: String,
}

impl Bytes for ColumnBytes {
    fn bytes(&self) -> &[u8] {
        // The column was loaded and checked when this was created, and is not unloaded.
        let part = self.collection.members().next().and_then(Result::ok);
        part.and_then(|dataset| dataset.column(&self.name).ok()).map_or(&[], |column| column.bytes)
    }
}

/// The values of an attribute: without a copy from the index, or gathered.
pub(crate) fn values<'py>(py: Python<'py>, dataset: &Dataset, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let opened = dataset.shared.get()?;
    let collection = opened.reader.collection();
    let kind = dataset.names.attributes().find(|(_, (known, _))| known.text() == name).map(|(_, (_, kind))| kind);
    let known = || dataset.names.attributes().map(|(_, (name, _))| name.text()).collect::<Vec<_>>().join(", ");
    let kind = kind.ok_or_else(|| {
        let shown = grainstore_format::escape_bytes(name.as_bytes());
        let unknown = Raised::new("NoSuchName", format!("no attribute \"{shown}\" (there are: {})", known()));
        match dataset.names.find(name) {
            Ok(ColumnRef::Field(_)) => unknown.hinting("it is a field: samples have it, and batches"),
            _ => unknown,
        }
    })?;
    let one_array = py.detach(|| -> Result<_, Raised> {
        let columns = collection.column(name)?;
        Ok(match columns.parts() {
            [(_, column)] if column.validity.is_none() => Some(column.width),
            _ => None,
        })
    })?;
    if let (Some(width), Selection::Range(range)) = (one_array, &dataset.selection) {
        let owner = Arc::new(ColumnBytes { collection: collection.clone(), name: name.to_owned() });
        let start = usize::try_from(range.start * u64::from(width))?;
        let end = usize::try_from(range.end * u64::from(width))?;
        return numpy::array(py, Memory::of(owner, start..end)?, &Dtype::of(kind, width));
    }
    let gathered = py.detach(|| {
        let ordinals = dataset.selection.ordinals_at(0..dataset.selection.len())?;
        gather(collection, name, &ordinals)
    })?;
    gathered.into_array(py, kind)
}

/// The texts of an attribute's codes, or the names of its numbers.
pub(crate) fn categories<'py>(py: Python<'py>, dataset: &Dataset, name: &str) -> PyResult<Bound<'py, PyList>> {
    let opened = dataset.shared.get()?;
    let collection = opened.reader.collection();
    if let Some(names) = py.detach(|| collection.names(name)).map_err(Raised::from)? {
        let texts: Option<Vec<&str>> = names.iter().map(|name| name.as_str()).collect();
        let member = collection.schema().names_member(name).unwrap_or_default();
        let no_texts = || Raised::new("NoSuchName", format!("not all of metadata[{member:?}] are texts"));
        return PyList::new(py, texts.ok_or_else(no_texts)?);
    }
    let categories = py.detach(|| collection.categories(name)).map_err(Raised::from)?;
    PyList::new(py, categories.iter())
}
