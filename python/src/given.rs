//! Values that a caller gives for the attributes and fields of a sample. A value that does not fit is an error, and
//! never becomes another value.

use grainstore_format::{
    AttributeType, AttributeValue, Categories, FieldType, Shape, nearest_bfloat16, nearest_float16,
};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyString, PyType};

use crate::argument::shown;
use crate::error::Raised;
use crate::numpy::{Dtype, bfloat16};

/// The value, or `None` if it is missing: `None` in Python, or masked in NumPy.
pub(crate) fn present<'py>(name: &str, value: Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if value.is_none() {
        return Ok(None);
    }
    if value.is_exact_instance_of::<PyBytes>() || value.is_exact_instance_of::<PyString>() {
        return Ok(Some(value));
    }
    let py = value.py();
    static MASKED_ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if !value.is_instance(MASKED_ARRAY.import(py, "numpy.ma", "MaskedArray")?)? {
        return Ok(Some(value));
    }
    let mask = py.import("numpy.ma")?.call_method1("getmaskarray", (&value,))?;
    if !mask.call_method0("any")?.is_truthy()? {
        return value.getattr("data").map(Some);
    }
    if mask.call_method0("all")?.is_truthy()? {
        return Ok(None);
    }
    Err(PyTypeError::new_err(format!("{name}: some of its elements are masked; a field is either missing or whole")))
}

fn wrong(name: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{name}: expected {expected}, found {}", shown(found)))
}

/// A value in the type of the attribute.
pub(crate) fn scalar(name: &str, kind: &AttributeType, value: &Bound<'_, PyAny>) -> PyResult<AttributeValue> {
    let py = value.py();
    let too_large = |error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(py) {
            PyOverflowError::new_err(format!("{name}: {} does not fit {}", value, kind.name()))
        } else if error.is_instance_of::<PyTypeError>(py) {
            wrong(name, kind.name(), value)
        } else {
            // An exception from the value's own code, or Ctrl-C in it.
            error
        }
    };
    let is_bool = value.is_instance_of::<PyBool>() || matches!(value.get_type().name()?.to_str()?, "bool" | "bool_");
    let read = match kind {
        AttributeType::Bool if is_bool => AttributeValue::Bool(value.is_truthy()?),
        AttributeType::Bool => return Err(wrong(name, "bool", value)),
        _ if is_bool => return Err(wrong(name, kind.name(), value)),
        AttributeType::Int8 | AttributeType::Int16 | AttributeType::Int32 | AttributeType::Int64 => {
            AttributeValue::Int(value.extract().map_err(too_large)?)
        }
        AttributeType::Uint8 | AttributeType::Uint16 | AttributeType::Uint32 | AttributeType::Uint64 => {
            AttributeValue::Uint(value.extract().map_err(too_large)?)
        }
        AttributeType::Float32 => {
            let wide: f64 = value.extract().map_err(too_large)?;
            let narrow: f32 = value.extract().map_err(too_large)?;
            if wide.is_finite() && narrow.is_infinite() {
                return Err(PyOverflowError::new_err(format!("{name}: {value} does not fit {}", kind.name())));
            }
            AttributeValue::Float32(narrow)
        }
        AttributeType::Float64 => AttributeValue::Float64(value.extract().map_err(too_large)?),
        AttributeType::Float16 | AttributeType::Bfloat16 => {
            let wide: f64 = value.extract().map_err(too_large)?;
            let narrow = if *kind == AttributeType::Float16 {
                AttributeValue::Float16(nearest_float16(wide))
            } else {
                AttributeValue::Bfloat16(nearest_bfloat16(wide))
            };
            let is_infinite = match &narrow {
                AttributeValue::Float16(narrow) => narrow.is_infinite(),
                AttributeValue::Bfloat16(narrow) => narrow.is_infinite(),
                _ => false,
            };
            if wide.is_finite() && is_infinite {
                return Err(PyOverflowError::new_err(format!("{name}: {value} does not fit {}", kind.name())));
            }
            narrow
        }
        AttributeType::Timestamp => {
            let time: i64 = nanoseconds(name, value)?.extract().map_err(too_large)?;
            if time == i64::MIN {
                let what = "is not a time but NaT in NumPy: give None where a sample has none";
                return Err(PyValueError::new_err(format!("{name}: {time} {what}")));
            }
            AttributeValue::Timestamp(time)
        }
        AttributeType::Category => {
            let text = value.cast::<PyString>().map_err(|_| wrong(name, "str", value))?;
            AttributeValue::Category(text.to_str()?.into())
        }
        AttributeType::Opaque(_) => return Err(wrong(name, "a value of a type that this version knows", value)),
    };
    match kind.accepts(&read) {
        true => Ok(read),
        false if *kind == AttributeType::Category => {
            let (len, most) = (value.len()?, Categories::MAX_NAME_LEN);
            Err(PyValueError::new_err(format!(
                "{name}: a text of {len} characters, a category has {most} bytes at most"
            )))
        }
        false => Err(PyOverflowError::new_err(format!("{name}: {} does not fit {}", value, kind.name()))),
    }
}

/// The nanoseconds of `numpy.datetime64`; any other value is returned unchanged.
fn nanoseconds<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = value.py().import("numpy")?;
    if !value.is_instance(&numpy.getattr("datetime64")?)? {
        return Ok(value.clone());
    }
    if numpy.call_method1("isnat", (value,))?.is_truthy()? {
        return Err(PyValueError::new_err(format!("{name}: NaT is no time: give None where a sample has none")));
    }
    let in_ns = value.call_method1("astype", ("<M8[ns]",))?;
    // NumPy wraps times that are too far from 1970, and cuts units below nanoseconds.
    if in_ns.call_method1("astype", (value.getattr("dtype")?,))?.ne(value)? {
        return Err(PyOverflowError::new_err(format!("{name}: {value} is no whole number of nanoseconds in 64 bits")));
    }
    in_ns.call_method1("astype", ("<i8",))
}

/// Appends a field's bytes to a payload.
pub(crate) fn append_field(
    name: &str,
    kind: &FieldType,
    value: &Bound<'_, PyAny>,
    payload: &mut Vec<u8>,
) -> PyResult<()> {
    match kind {
        FieldType::Bytes => append_bytes(name, value, payload),
        FieldType::Str => {
            let text = value.cast::<PyString>().map_err(|_| wrong(name, "str", value))?;
            payload.extend_from_slice(text.to_str()?.as_bytes());
            Ok(())
        }
        FieldType::Array { element, shape } => append_array(name, element, shape, value, payload),
        FieldType::Opaque(_) => Err(wrong(name, "a value of a type that this version knows", value)),
    }
}

fn append_bytes(name: &str, value: &Bound<'_, PyAny>, payload: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        payload.extend_from_slice(bytes.as_bytes());
        return Ok(());
    }
    let buffer = PyBuffer::<u8>::get(value).map_err(|error| {
        let is_none =
            error.is_instance_of::<PyTypeError>(value.py()) || error.is_instance_of::<PyBufferError>(value.py());
        if is_none { wrong(name, "bytes, or a buffer of bytes", value) } else { error }
    })?;
    let start = payload.len();
    payload.resize(start + buffer.item_count(), 0);
    buffer.copy_to_slice(value.py(), &mut payload[start..])
}

fn append_array(
    name: &str,
    element: &AttributeType,
    shape: &Shape,
    value: &Bound<'_, PyAny>,
    payload: &mut Vec<u8>,
) -> PyResult<()> {
    let py = value.py();
    let numpy = py.import("numpy")?;
    let dtype = numpy.call_method1("dtype", (Dtype::of_element(element).object(py)?,))?;
    let array = if value.is_instance(&numpy.getattr("ndarray")?)? || value.hasattr("__array__")? {
        let array = numpy.call_method1("asarray", (value,))?;
        let found = array.getattr("dtype")?;
        if !found.eq(&dtype)? {
            let kind = element.name();
            let target = match element {
                AttributeType::Bfloat16 => "ml_dtypes.bfloat16), of the package ml_dtypes".to_owned(),
                _ => format!("\"{dtype}\")"),
            };
            let what =
                format!("{name}: expected an array of {kind}, found one of {found}: convert it with .astype({target}");
            return Err(PyTypeError::new_err(what));
        }
        array
    } else {
        converted(name, element, value, &dtype).map_err(|error| {
            if !error.is_instance_of::<PyValueError>(py) {
                return error;
            }
            // For example rows of different lengths.
            let wrong = wrong(name, &format!("an array of {}", element.name()), value);
            wrong.set_cause(py, Some(error));
            wrong
        })?
    };
    let found: Vec<u64> = array.getattr("shape")?.extract()?;
    let fixed = if shape.is_open() { found.get(1..) } else { Some(found.as_slice()) };
    if fixed != Some(shape.fixed_dimensions()) {
        let open = shape.is_open().then(|| "any".to_owned());
        let expected: Vec<String> =
            open.into_iter().chain(shape.fixed_dimensions().iter().map(u64::to_string)).collect();
        let what = format!("{name}: expected the shape [{}], found {found:?}", expected.join(", "));
        return Err(Raised::new("InvalidSample", what).into());
    }
    let bytes = array.call_method0("tobytes")?;
    payload.extend_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
    Ok(())
}

/// Python's numbers as an array of a type, if each fits that type: a float may lose digits, an integer must stay exact.
fn converted<'py>(
    name: &str,
    element: &AttributeType,
    value: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let numpy = value.py().import("numpy")?;
    let given = numpy.call_method1("asarray", (value,))?;
    if *element == AttributeType::Bfloat16 && bfloat16(value.py())?.is_none() {
        let what =
            format!("{name}: numbers of bfloat16 need the package ml_dtypes, or give an array of their bits, uint16");
        return Err(PyTypeError::new_err(what));
    }
    use AttributeType::{Bfloat16, Float16, Float32, Float64};
    let is_float = matches!(element, Float16 | Bfloat16 | Float32 | Float64);
    let empty = given.getattr("size")?.extract::<usize>()? == 0;
    match given.getattr("dtype")?.getattr("kind")?.extract::<String>()?.as_str() {
        _ if empty => {}
        "i" | "u" => {}
        "f" if is_float => {}
        _ => {
            let found = given.getattr("dtype")?;
            return Err(PyTypeError::new_err(format!("{name}: expected numbers of {}, found {found}", element.name())));
        }
    }
    let too_large = || PyOverflowError::new_err(format!("{name}: a number does not fit {}", element.name()));
    let array = numpy
        .call_method1("asarray", (value, dtype))
        .map_err(|error| if error.is_instance_of::<PyOverflowError>(value.py()) { too_large() } else { error })?;
    let finite = |array: &Bound<'py, PyAny>| numpy.call_method1("isfinite", (array,));
    let same = if is_float {
        numpy.call_method1("array_equal", (finite(&array)?, finite(&given)?))?
    } else {
        numpy.call_method1("array_equal", (&array, &given))?
    };
    if same.is_truthy()? { Ok(array) } else { Err(too_large()) }
}
