//! The keys of a dataset or a view, read on demand.

use std::sync::Arc;

use grainstore_host::ForkLock;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::argument::integer;
use crate::error::Raised;
use crate::fork::lock;
use crate::key;
use crate::opened::{Opened, SharedReader};
use crate::selection::Selection;

/// Number of keys that an iteration reads at a time.
const BLOCK: u64 = BLOCK_STEP as u64;
const BLOCK_STEP: usize = 1 << 14;
const GROUP: u64 = 64;

/// Keys in the order of the samples; `in` looks one up.
#[pyclass(frozen, module = "grainstore")]
pub(crate) struct Keys {
    shared: Arc<SharedReader>,
    selection: Selection,
}

#[pyclass(frozen, module = "grainstore._core")]
struct KeyIterator {
    keys: Py<Keys>,
    at: ForkLock<(u64, std::vec::IntoIter<Vec<u8>>)>,
}

impl Keys {
    pub(crate) fn new(shared: Arc<SharedReader>, selection: Selection) -> Self {
        Self { shared, selection }
    }

    fn block(&self, first: u64) -> Result<Vec<Vec<u8>>, Raised> {
        let opened = self.shared.get()?;
        let end = self.selection.len().min(first.saturating_add(BLOCK));
        match &self.selection {
            Selection::Range(range) => neighbours(&opened, range.start + first..range.start + end.max(first)),
            _ => {
                let ordinals = self.selection.ordinals_at(first.min(end)..end)?;
                ordinals.into_iter().map(|one| key_of(&opened, one)).collect()
            }
        }
    }
}

fn key_of(opened: &Opened, ordinal: u64) -> Result<Vec<u8>, Raised> {
    key::of_keyed(opened.reader.collection(), ordinal)
}

/// The keys of consecutive samples, read together if they belong to one dataset.
fn neighbours(opened: &Opened, ordinals: std::ops::Range<u64>) -> Result<Vec<Vec<u8>>, Raised> {
    let collection = opened.reader.collection();
    if ordinals.is_empty() {
        return Ok(Vec::new());
    }
    if collection.member_count() > 1 {
        return ordinals.map(|ordinal| key_of(opened, ordinal)).collect();
    }
    let mut keys = Vec::new();
    if let Some(mut scan) = collection.member(0)?.key_scan()? {
        for group in ordinals.start / GROUP..ordinals.end.div_ceil(GROUP) {
            let mut ordinal = group * GROUP;
            scan.group(group, |key| {
                if ordinals.contains(&ordinal) {
                    keys.push(key.to_vec());
                }
                ordinal += 1;
            })?;
        }
    }
    Ok(keys)
}

#[pymethods]
impl Keys {
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.selection.len())?)
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        let opened = self.shared.get()?;
        let ordinal = self.selection.ordinal(integer(index, self.selection.len())?)?;
        key::to_python(py, &py.detach(|| key_of(&opened, ordinal))?)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let name = key::from_python(key)?;
        let found = key.py().detach(|| find(&self.shared, &name))?;
        Ok(found.is_some_and(|ordinal| self.selection.contains(ordinal)))
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, KeyIterator>> {
        let py = slf.py();
        Bound::new(py, KeyIterator { keys: slf.unbind(), at: ForkLock::new((0, Vec::new().into_iter())) })
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.tolist(py)?.call_method0("__reversed__")
    }

    /// All keys, as a list.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for first in (0..self.selection.len()).step_by(BLOCK_STEP) {
            py.check_signals()?;
            for key in py.detach(|| self.block(first))? {
                list.append(key::to_python(py, &key)?)?;
            }
        }
        Ok(list)
    }

    fn __repr__(&self) -> String {
        format!("<grainstore.Keys of {} samples>", self.selection.len())
    }
}

/// The ordinal of a key.
pub(crate) fn find(shared: &SharedReader, key: &[u8]) -> Result<Option<u64>, Raised> {
    Ok(shared.get()?.reader.collection().find(key)?)
}

#[pymethods]
impl KeyIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = py.detach(|| -> Result<_, Raised> {
            let mut at = lock(&self.at)?;
            if let Some(key) = at.1.next() {
                return Ok(Some(key));
            }
            let block = self.keys.get().block(at.0)?;
            *at = (at.0 + block.len() as u64, block.into_iter());
            Ok(at.1.next())
        })?;
        key.map(|key| key::to_python(py, &key)).transpose()
    }
}
