//! Arrays over our memory. NumPy is called through Python, which is fast enough for these calls.

use std::borrow::Cow;

use grainstore_format::AttributeType;
use pyo3::exceptions::{PyImportError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::error::Raised;
use crate::view::{Memory, OwnMemory};

/// A function of NumPy, looked up once.
fn function<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let function = cell.get_or_try_init(py, || py.import("numpy")?.getattr(name).map(Bound::unbind))?;
    Ok(function.bind(py))
}

/// The type of an array.
pub(crate) enum Dtype {
    /// NumPy's name of it, little-endian.
    Named(Cow<'static, str>),
    /// That of the package `ml_dtypes`, or `uint16` without the package: NumPy has no such type.
    Bfloat16,
}

impl Dtype {
    /// Bytes.
    pub(crate) const UINT8: Self = Self::Named(Cow::Borrowed("<u1"));
    /// Truth values.
    pub(crate) const BOOL: Self = Self::Named(Cow::Borrowed("?"));
    /// Sample numbers.
    pub(crate) const INT64: Self = Self::Named(Cow::Borrowed("<i8"));

    /// The NumPy type of an attribute's values. `width` is their length in bytes: it differs between columns of
    /// category codes, and between columns of types that this version does not know.
    pub(crate) fn of(kind: &AttributeType, width: u32) -> Self {
        let name = match kind {
            AttributeType::Bool => "?",
            AttributeType::Int8 => "<i1",
            AttributeType::Int16 => "<i2",
            AttributeType::Int32 => "<i4",
            AttributeType::Int64 => "<i8",
            AttributeType::Uint8 => "<u1",
            AttributeType::Uint16 => "<u2",
            AttributeType::Uint32 => "<u4",
            AttributeType::Uint64 => "<u8",
            AttributeType::Float16 => "<f2",
            AttributeType::Bfloat16 => return Self::Bfloat16,
            AttributeType::Float32 => "<f4",
            AttributeType::Float64 => "<f8",
            AttributeType::Timestamp => "<M8[ns]",
            AttributeType::Category => return Self::Named(format!("<u{width}").into()),
            AttributeType::Opaque(_) => return Self::Named(format!("V{width}").into()),
        };
        Self::Named(name.into())
    }

    /// The type of the elements of an array field.
    pub(crate) fn of_element(element: &AttributeType) -> Self {
        Self::of(element, element.width().unwrap_or(1))
    }

    /// What NumPy takes as a type.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Named(name) => Ok(PyString::new(py, name).into_any()),
            Self::Bfloat16 => match bfloat16(py)? {
                Some(kind) => Ok(kind.clone()),
                None => Ok(PyString::new(py, "<u2").into_any()),
            },
        }
    }
}

/// `ml_dtypes.bfloat16`; `None` where that package is not installed.
pub(crate) fn bfloat16(py: Python<'_>) -> PyResult<Option<&Bound<'_, PyAny>>> {
    static BFLOAT16: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();
    let kind = BFLOAT16.get_or_try_init(py, || match py.import("ml_dtypes") {
        Ok(module) => module.getattr("bfloat16").map(|kind| Some(kind.unbind())),
        Err(error) if error.is_instance_of::<PyImportError>(py) => Ok(None),
        Err(error) => Err(error),
    })?;
    Ok(kind.as_ref().map(|kind| kind.bind(py)))
}

/// A time as `numpy.datetime64`.
pub(crate) fn datetime64(py: Python<'_>, ns: i64) -> PyResult<Bound<'_, PyAny>> {
    static DATETIME64: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    function(py, &DATETIME64, "datetime64")?.call1((ns, "ns"))
}

/// A read-only array of one dimension over memory, without a copy.
pub(crate) fn array<'py>(py: Python<'py>, memory: Memory, dtype: &Dtype) -> PyResult<Bound<'py, PyAny>> {
    if memory.bytes().is_empty() {
        return empty(py, dtype);
    }
    from_buffer(Bound::new(py, memory)?.as_any(), dtype)
}

/// A writable array of one dimension over memory that nothing else uses: PyTorch warns of all others.
pub(crate) fn own_array<'py>(py: Python<'py>, bytes: Vec<u8>, dtype: &Dtype) -> PyResult<Bound<'py, PyAny>> {
    let memory = OwnMemory::of(bytes);
    if memory.is_empty() {
        return empty(py, dtype);
    }
    from_buffer(Bound::new(py, memory)?.as_any(), dtype)
}

fn from_buffer<'py>(buffer: &Bound<'py, PyAny>, dtype: &Dtype) -> PyResult<Bound<'py, PyAny>> {
    static FROMBUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = buffer.py();
    function(py, &FROMBUFFER, "frombuffer")?.call1((buffer, dtype.object(py)?))
}

/// `frombuffer` refuses an empty buffer.
fn empty<'py>(py: Python<'py>, dtype: &Dtype) -> PyResult<Bound<'py, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    function(py, &EMPTY, "empty")?.call1((0, dtype.object(py)?))
}

/// A read-only array of values.
pub(crate) fn array_of<'py>(py: Python<'py>, bytes: Vec<u8>, dtype: &Dtype) -> PyResult<Bound<'py, PyAny>> {
    array(py, Memory::whole(std::sync::Arc::new(bytes)), dtype)
}

/// Values of which some are missing: a masked array. `valid` has one byte for each value, or for each row.
pub(crate) fn masked<'py>(py: Python<'py>, values: Bound<'py, PyAny>, valid: Vec<u8>) -> PyResult<Bound<'py, PyAny>> {
    let valid = array_of(py, valid, &Dtype::BOOL)?;
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
    all.set_item(array_of(py, valid.clone(), &Dtype::BOOL)?, rows)?;
    all.call_method1("setflags", (false,))?;
    masked(py, all, valid)
}

/// The bytes of numbers as an array of a shape.
pub(crate) fn shaped<'py>(
    py: Python<'py>,
    memory: Memory,
    dtype: &Dtype,
    shape: &[u64],
) -> PyResult<Bound<'py, PyAny>> {
    array(py, memory, dtype)?.call_method1("reshape", (shape.to_vec(),))
}
