//! Arrays over our memory. NumPy is called through Python, which is fast enough for these calls.

use grainstore_format::AttributeType;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::error::Raised;
use crate::view::Memory;

/// A function of NumPy, looked up once.
fn function<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let function = cell.get_or_try_init(py, || py.import("numpy")?.getattr(name).map(Bound::unbind))?;
    Ok(function.bind(py))
}

/// NumPy's name of a type, little-endian.
pub(crate) fn dtype_of(kind: AttributeType) -> &'static str {
    match kind {
        AttributeType::Bool => "?",
        AttributeType::Int8 => "<i1",
        AttributeType::Int16 => "<i2",
        AttributeType::Int32 => "<i4",
        AttributeType::Int64 => "<i8",
        AttributeType::Uint8 => "<u1",
        AttributeType::Uint16 => "<u2",
        AttributeType::Uint32 => "<u4",
        AttributeType::Uint64 => "<u8",
        AttributeType::Float32 => "<f4",
        AttributeType::Float64 => "<f8",
    }
}

/// A read-only array of one dimension over memory, without a copy.
pub(crate) fn array<'py>(py: Python<'py>, memory: Memory, dtype: &str) -> PyResult<Bound<'py, PyAny>> {
    static FROMBUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if memory.bytes().is_empty() {
        // An empty buffer, which `frombuffer` refuses.
        return function(py, &EMPTY, "empty")?.call1((0, dtype));
    }
    function(py, &FROMBUFFER, "frombuffer")?.call1((memory, dtype))
}

/// A read-only array of values.
pub(crate) fn array_of<'py>(py: Python<'py>, bytes: Vec<u8>, dtype: &str) -> PyResult<Bound<'py, PyAny>> {
    array(py, Memory::whole(std::sync::Arc::new(bytes)), dtype)
}

/// Values of which some are missing: a masked array. `valid` has one byte for each value, or for each row.
pub(crate) fn masked<'py>(py: Python<'py>, values: Bound<'py, PyAny>, valid: Vec<u8>) -> PyResult<Bound<'py, PyAny>> {
    let valid = array_of(py, valid, "?")?;
    let missing = valid.call_method0("__invert__")?;
    let shape = values.getattr("shape")?;
    let ndim: usize = values.getattr("ndim")?.extract()?;
    let mask = if ndim > 1 {
        let mut rows = vec![1_isize; ndim];
        rows[0] = -1;
        let column = missing.call_method1("reshape", (rows,))?;
        py.import("numpy")?.call_method1("broadcast_to", (column, shape))?
    } else {
        missing
    };
    let options = pyo3::types::PyDict::new(py);
    options.set_item("mask", mask)?;
    py.import("numpy.ma")?.call_method("masked_array", (values,), Some(&options))
}

/// The rows that are present, each at its index among zeros: a masked array of `shape`.
pub(crate) fn spread<'py>(
    py: Python<'py>,
    rows: Bound<'py, PyAny>,
    valid: Vec<u8>,
    shape: Vec<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    // Zeros that are never written take no memory.
    let all = py.import("numpy")?.call_method1("zeros", (&shape, rows.getattr("dtype")?)).map_err(|error| {
        // NumPy raises `ValueError` for an array that no machine could hold.
        if error.is_instance_of::<PyMemoryError>(py) || error.is_instance_of::<PyValueError>(py) {
            Raised::new("OutOfMemory", format!("no memory for an array of {shape:?}")).into()
        } else {
            error
        }
    })?;
    all.set_item(array_of(py, valid.clone(), "?")?, rows)?;
    all.call_method1("setflags", (false,))?;
    masked(py, all, valid)
}

/// The bytes of numbers as an array of a shape.
pub(crate) fn shaped<'py>(py: Python<'py>, memory: Memory, dtype: &str, shape: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    array(py, memory, dtype)?.call_method1("reshape", (shape.to_vec(),))
}
