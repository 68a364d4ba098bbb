//! Weights by which epochs draw the samples of a view.

use std::sync::Arc;

use grainstore_reader::WeightsError;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::Raised;
use crate::selection::Selection;

/// Weights of the samples of a view, and how many an epoch draws of them.
#[pyclass(frozen, module = "grainstore._core", name = "_Weights")]
pub(crate) struct Weights {
    weights: Arc<grainstore_reader::Weights>,
    /// As they were given, in the order of an epoch's indices: for pickle.
    given: Vec<f64>,
}

impl Weights {
    /// Weights in the order of the view.
    pub(crate) fn of(selection: &Selection, given: Vec<f64>, num_samples: u64) -> Result<Self, Raised> {
        let expected = selection.len();
        let found = given.len() as u64;
        if found != expected {
            return Err(Raised::option(format!("weights has {found} numbers, the view has {expected} samples")));
        }
        // Before they are sorted, so that the error has the index of the view.
        check(&given, num_samples)?;
        Self::by_index(selection.by_index(given)?, num_samples)
    }

    fn by_index(given: Vec<f64>, num_samples: u64) -> Result<Self, Raised> {
        let weights = grainstore_reader::Weights::new(given.iter().copied(), num_samples).map_err(raised)?;
        Ok(Self { weights: Arc::new(weights), given })
    }

    pub(crate) fn shared(&self) -> Arc<grainstore_reader::Weights> {
        Arc::clone(&self.weights)
    }
}

fn check(given: &[f64], num_samples: u64) -> Result<(), Raised> {
    if num_samples == 0 {
        return Err(Raised::option("num_samples is 0, expected 1 or more"));
    }
    let invalid = (0..).zip(given).find(|(_, weight)| !(weight.is_finite() && **weight >= 0.0));
    invalid.map_or(Ok(()), |(index, &value)| Err(raised(WeightsError::Invalid { index, value })))
}

fn raised(error: WeightsError) -> Raised {
    match error {
        WeightsError::NoMemory(error) => error.into(),
        other => Raised::option(other.to_string()),
    }
}

#[pymethods]
impl Weights {
    /// How many samples an epoch draws.
    #[getter]
    fn num_samples(&self) -> u64 {
        self.weights.draw_count()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let bytes: Vec<u8> = self.given.iter().flat_map(|weight| weight.to_le_bytes()).collect();
        let all = (PyBytes::new(py, &bytes), self.weights.draw_count()).into_pyobject(py)?;
        Ok((py.import("grainstore._core")?.getattr("_reweigh")?, all))
    }
}

/// Weights that another process had: called by pickle.
#[pyfunction]
#[pyo3(name = "_reweigh", signature = (given, num_samples))]
pub(crate) fn reweigh(py: Python<'_>, given: &Bound<'_, PyAny>, num_samples: u64) -> PyResult<Weights> {
    let bytes = PyBuffer::<u8>::get(given)?.to_vec(py)?;
    let words = bytes.chunks_exact(8).filter_map(|word| Some(f64::from_le_bytes(*word.first_chunk()?)));
    Ok(Weights::by_index(words.collect(), num_samples)?)
}
