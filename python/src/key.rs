//! Keys are bytes; Python sees text. Bytes that are not UTF-8 are converted like Python's file names, with
//! `surrogateescape`, which loses nothing.

use grainstore_store::Collection;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::Raised;

/// The key of a sample of a collection with keys.
pub(crate) fn of_keyed(collection: &Collection, ordinal: u64) -> Result<Vec<u8>, Raised> {
    collection.key(ordinal)?.ok_or_else(|| Raised::bug("a sample of a dataset with keys has none"))
}

/// A key as a Python string.
pub(crate) fn to_python<'py>(py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(key) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, key).call_method1("decode", ("utf-8", "surrogateescape")),
    }
}

/// A key from a Python argument.
pub(crate) fn from_python(key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = key.cast::<PyString>() {
        if let Ok(text) = text.to_str() {
            return Ok(text.as_bytes().to_vec());
        }
        let bytes = text.call_method1("encode", ("utf-8", "surrogateescape"))?;
        return Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec());
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    let found = key.get_type().name()?;
    Err(PyTypeError::new_err(format!("a key is str or bytes, not {found}")))
}
