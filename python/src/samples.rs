//! All samples of a dataset or a view, one after the other: read many at a time.

use std::sync::Arc;

use grainstore_host::ForkLock;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::Batch;
use crate::error::Raised;
use crate::fork::lock;
use crate::logging;
use crate::opened::SharedReader;
use crate::schema::Names;
use crate::selection::Selection;

/// Maximum number of samples, and of bytes, that are read together.
const COUNT_MAX: u64 = 256;
const LEN_MAX: u64 = 16 << 20;

/// An iterator of dictionaries.
#[pyclass(frozen, module = "grainstore._core")]
pub(crate) struct Samples {
    shared: Arc<SharedReader>,
    selection: Selection,
    names: Arc<Names>,
    at: ForkLock<At>,
}

struct At {
    /// The position after what was read.
    next: u64,
    batch: Option<(Batch, usize)>,
}

impl Samples {
    pub(crate) fn new(shared: Arc<SharedReader>, selection: Selection, names: Arc<Names>) -> Self {
        Self { shared, selection, names, at: ForkLock::new(At { next: 0, batch: None }) }
    }

    /// Reads the next samples; `None` at the end.
    fn read(&self, next: u64) -> Result<Option<Batch>, Raised> {
        let opened = self.shared.get()?;
        let end = self.selection.len().min(next.saturating_add(COUNT_MAX));
        let mut ordinals = self.selection.ordinals_at(next.min(end)..end)?;
        let mut len = 0_u64;
        let mut count = 0;
        for &ordinal in &ordinals {
            len = len.saturating_add(opened.reader.collection().locate(ordinal)?.raw_len());
            if count > 0 && len > LEN_MAX {
                break;
            }
            count += 1;
        }
        ordinals.truncate(count);
        if ordinals.is_empty() {
            return Ok(None);
        }
        Ok(Some(Batch::new(opened.reader.get_batch(&ordinals)?, &opened, &self.names)))
    }
}

#[pymethods]
impl Samples {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        logging::deliver(py)?;
        let (batch, number) = {
            // Python's lock is not held while waiting for another thread that reads.
            let found = py.detach(|| -> Result<_, Raised> {
                let mut at = lock(&self.at)?;
                if at.batch.as_ref().is_none_or(|(batch, number)| *number >= batch.len()) {
                    at.batch = self.read(at.next)?.map(|batch| (batch, 0));
                    at.next += at.batch.as_ref().map_or(0, |(batch, _)| batch.len() as u64);
                }
                let Some((batch, number)) = at.batch.as_mut() else { return Ok(None) };
                *number += 1;
                Ok(Some((batch.clone(), *number - 1)))
            })?;
            match found {
                Some(found) => found,
                None => return Ok(None),
            }
        };
        batch.sample(py, number).map(Some)
    }
}
