//! Arguments of callers: sample numbers, paths, names of choices.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

use grainstore_format::UnknownName;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList, PyString, PyTuple};

use crate::dataset::Dataset;
use crate::error::Raised;

/// Sample numbers below `len`: a list, a range, an array of integers, or a mask of `len` truth values. Whether such
/// samples exist is not checked here.
pub(crate) fn indices(given: &Bound<'_, PyAny>, len: u64) -> PyResult<Vec<i64>> {
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        let items: Vec<Bound<'_, PyAny>> = given.try_iter()?.collect::<PyResult<_>>()?;
        if items.is_empty() || !items.iter().all(|item| item.is_instance_of::<PyBool>()) {
            return items.iter().map(|item| integer(item, len)).collect();
        }
    }
    let py = given.py();
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("asarray", (without_mask(given)?,))?;
    let dtype = array.getattr("dtype")?;
    let count: u64 = array.getattr("size")?.extract()?;
    let array = match dtype.getattr("kind")?.extract::<String>()?.as_str() {
        "b" if array.getattr("ndim")?.extract::<usize>()? != 1 => {
            let shape = array.getattr("shape")?;
            return Err(Raised::option(format!("a mask of shape {shape}, expected shape ({len},)")).into());
        }
        "b" if count != len => {
            return Err(
                Raised::option(format!("a mask of {count} values, expected one for each of {len} samples")).into()
            );
        }
        _ if count == 0 => return Ok(Vec::new()),
        "b" => numpy.call_method1("flatnonzero", (array,))?,
        "u" if array.call_method0("max")?.extract::<u64>()? > i64::MAX.cast_unsigned() => {
            return Err(Raised::no_such_ordinal(array.call_method0("max")?, len).into());
        }
        "i" | "u" => array,
        _ => return Err(PyTypeError::new_err(format!("numbers of samples are integers, not {dtype}"))),
    };
    let array = numpy.call_method1("ascontiguousarray", (array, "=i8"))?.call_method0("ravel")?;
    PyBuffer::<i64>::get(&array)?.to_vec(py)
}

/// Whether these are truth values: an array of them, or a list or tuple of nothing else.
pub(crate) fn truth_values(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        let all = given.try_iter()?.all(|item| item.is_ok_and(|item| item.is_instance_of::<PyBool>()));
        return Ok(all && given.len()? > 0);
    }
    match given.getattr("dtype").and_then(|dtype| dtype.getattr("kind")) {
        Ok(kind) => Ok(kind.extract::<String>().is_ok_and(|kind| kind == "b")),
        Err(_) => Ok(false),
    }
}

/// Truth values without NumPy's mask: where a value is missing, a condition on it does not hold.
fn without_mask<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let masked = given.py().import("numpy.ma")?;
    if !given.is_instance(&masked.getattr("MaskedArray")?)?
        || !masked.call_method1("is_masked", (given,))?.is_truthy()?
    {
        return Ok(given.clone());
    }
    if truth_values(given)? {
        return given.call_method1("filled", (false,));
    }
    Err(Raised::option("numbers of samples: some are masked").into())
}

/// The number of a sample. A number that fits no machine word is the number of no sample.
pub(crate) fn integer(index: &Bound<'_, PyAny>, len: u64) -> PyResult<i64> {
    let py = index.py();
    index.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(py) {
            Raised::no_such_ordinal(index, len).into()
        } else if error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err(format!("the number of a sample is an integer, not {}", shown(index)))
        } else {
            error
        }
    })
}

/// An index below `len`, counted from the end if it is negative. `wrong_type` is the error text for a value that is not
/// an integer.
pub(crate) fn place(index: &Bound<'_, PyAny>, len: usize, wrong_type: &str) -> PyResult<usize> {
    let py = index.py();
    let found = match index.extract::<i64>() {
        Ok(found) => Some(found),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => None,
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            return Err(PyTypeError::new_err(format!("{wrong_type}, not {}", shown(index))));
        }
        Err(error) => return Err(error),
    };
    let from_start =
        found.and_then(|found| if found < 0 { found.checked_add_unsigned(len as u64) } else { Some(found) });
    let place = from_start.and_then(|place| usize::try_from(place).ok()).filter(|&place| place < len);
    place.ok_or_else(|| PyIndexError::new_err(format!("no sample {index} in this batch: it has {len}")))
}

/// The name of a value's type.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string())
}

/// One path, or several.
pub(crate) fn paths(given: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    let is_one = given.is_instance_of::<PyString>() || given.hasattr("__fspath__")?;
    if is_one || given.is_instance_of::<PyBytes>() {
        return Ok(vec![path(given)?]);
    }
    if given.is_instance_of::<Dataset>() {
        return Err(PyTypeError::new_err("a path or several, not an open dataset: give its path"));
    }
    let paths = given.try_iter().map_err(|_| not_paths(given))?;
    paths.map(|one| path(&one?)).collect()
}

fn path(given: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    match given.cast::<PyBytes>() {
        Ok(bytes) => Ok(OsStr::from_bytes(bytes.as_bytes()).into()),
        Err(_) => given.extract().map_err(|error: PyErr| {
            let is_no_path = error.is_instance_of::<PyTypeError>(given.py());
            if is_no_path { not_paths(given) } else { error }
        }),
    }
}

fn not_paths(given: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("a path or several, not {}", shown(given)))
}

/// Parses a value with a library's parser, whose error names the option.
pub(crate) fn parsed<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, Raised> {
    text.parse().map_err(|error: T::Err| Raised::option(error.to_string()))
}

/// Parses one of a library's named choices, given as `argument`.
pub(crate) fn choice<T: FromStr<Err = UnknownName>>(argument: &str, name: &str) -> Result<T, Raised> {
    name.parse().map_err(|error: UnknownName| Raised::option(error.about(argument)))
}
