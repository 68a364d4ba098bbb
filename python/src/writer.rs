//! Writing a dataset from Python, sample by sample.

use std::path::PathBuf;
use std::sync::OnceLock;

use grainstore_format::{Attribute, AttributeType, Field, FieldType, Geometry, Metadata, Schema, UserMetadata};
use grainstore_host::ForkLock;
use grainstore_writer::{AppendOptions, DatasetWriter, Sample, WriterOptions, existing};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::argument::shown;
use crate::convert::{alignment, chunk_size, compression, jobs as jobs_of};
use crate::error::Raised;
use crate::fork::{lock, release};
use crate::given::{append_field, present, scalar};
use crate::key;
use crate::logging;
use crate::schema::Names;

/// Writes a dataset, in the order of the calls. It appears under its name when the `with` block ends; if the block
/// raises, nothing appears.
#[pyclass(frozen, module = "grainstore")]
pub(crate) struct Writer {
    path: PathBuf,
    names: Names,
    keyed: bool,
    /// `None` once the writer was closed.
    writer: ForkLock<Option<DatasetWriter>>,
    /// The number of samples written, once the writer was closed.
    written: OnceLock<u64>,
}

fn only_field_missing(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{name} is missing: the only field of a schema is the payload, which every sample has"
    ))
}

pub(crate) fn schema_of(types: &Bound<'_, PyDict>) -> PyResult<Schema> {
    let mut attributes = Vec::new();
    let mut fields = Vec::new();
    for (name, kind) in types {
        let name: String = name
            .extract()
            .map_err(|_| PyTypeError::new_err(format!("schema: names are text, not {}", shown(&name))))?;
        let kind = type_name(&name, &kind)?;
        if let Some(kind) = AttributeType::from_name(&kind) {
            attributes.push(Attribute { name, kind });
        } else if let Some(kind) = FieldType::from_name(&kind) {
            fields.push(Field { name, kind });
        } else {
            let known = "bytes, str, an array such as float32[768] or float32[], or a scalar: bool, int8 to int64, uint8 to uint64, float16, \
                         bfloat16, float32, float64, timestamp, category";
            return Err(Raised::option(format!("schema: type of {name:?} is {kind:?}, expected {known}")).into());
        }
    }
    if fields.is_empty() {
        let what = "schema: it has no field of type bytes, str or an array; scalars alone have no payload to read";
        return Err(Raised::option(what).into());
    }
    Schema::new(attributes, fields).map_err(|error| Raised::option(format!("schema: {error}")).into())
}

/// The type of a column, which a schema gives as text.
fn type_name(name: &str, kind: &Bound<'_, PyAny>) -> PyResult<String> {
    if kind.is_instance_of::<PyDict>() {
        let what = format!(
            "schema: {name:?} is a dictionary, and a schema has one level: give each of its members a name of its own, \
             such as {:?}",
            format!("{name}.member")
        );
        return Err(Raised::option(what).into());
    }
    let wrong = || PyTypeError::new_err(format!("schema: the type of {name:?} is text, such as \"int64\", not {kind}"));
    kind.extract().map_err(|_| wrong())
}

/// The error for one of the samples that a writer was given, which it names: its number, and its key if it has one.
fn in_sample(error: PyErr, ordinal: Option<u64>, values: &Bound<'_, PyDict>) -> PyErr {
    let py = values.py();
    // An exception of a value's own code stays as it is.
    let ours = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOverflowError>(py);
    let (true, Some(ordinal)) = (ours, ordinal) else { return error };
    let key = values.get_item("key").ok().flatten().and_then(|key| key::from_python(&key).ok());
    let named = key.as_ref().map(|key| format!(" (key \"{}\")", grainstore_format::escape_bytes(key)));
    let value = error.value(py);
    let Ok(message) = value.str() else { return error };
    let message = format!("sample {ordinal}{}: {message}", named.unwrap_or_default());
    // The same object, so that its cause and the place it came from are kept; what cannot be changed stays as it is.
    let changed = value.setattr("args", (message,)).and_then(|()| {
        if value.hasattr("ordinal")? {
            value.setattr("ordinal", ordinal)?;
            value.setattr("key", key.map(|key| PyBytes::new(py, &key).unbind()))?;
        }
        Ok(())
    });
    drop(changed);
    error
}

pub(crate) fn user_metadata(metadata: &Bound<'_, PyAny>) -> PyResult<UserMetadata> {
    let text: String = metadata.py().import("json")?.call_method1("dumps", (metadata,))?.extract()?;
    match serde_json::from_str(&text) {
        Ok(serde_json::Value::Object(map)) => {
            UserMetadata::new(&map).map_err(|error| Raised::option(format!("metadata: {error}")).into())
        }
        _ => Err(Raised::option("metadata: expected a dictionary that JSON can hold").into()),
    }
}

/// The sample that a dictionary of key, attributes and fields describes.
pub(crate) fn sample_of(names: &Names, keyed: bool, py: Python<'_>, values: &Bound<'_, PyDict>) -> PyResult<Sample> {
    let key = match (keyed, values.get_item("key")?) {
        (true, Some(key)) => key::from_python(&key)?,
        (false, None) => Vec::new(),
        (true, None) => {
            let what = "key is missing: every sample has one, unless the writer is made with keyed=False";
            return Err(PyTypeError::new_err(what));
        }
        (false, Some(_)) => return Err(PyTypeError::new_err("key: the writer was made with keyed=False")),
    };
    let mut used = usize::from(keyed);
    let mut attributes = Vec::with_capacity(names.attributes.len());
    for (name, kind) in &names.attributes {
        let value = values.get_item(name.object(py))?;
        used += usize::from(value.is_some());
        let value = value.map(|value| present(name.text(), value)).transpose()?.flatten();
        attributes.push(value.map(|value| scalar(name.text(), kind, &value)).transpose()?);
    }
    let mut payload = Vec::new();
    let mut fields = Vec::with_capacity(names.fields.len());
    for (name, kind) in &names.fields {
        let value = values.get_item(name.object(py))?;
        used += usize::from(value.is_some());
        let start = payload.len() as u64;
        fields.push(match value.map(|value| present(name.text(), value)).transpose()?.flatten() {
            None if names.fields.len() == 1 => {
                return Err(unknown_name(names, keyed, values)?.unwrap_or_else(|| only_field_missing(name.text())));
            }
            None => None,
            Some(value) => {
                append_field(name.text(), kind, &value, &mut payload)?;
                Some(start..payload.len() as u64)
            }
        });
    }
    if used != values.len()
        && let Some(error) = unknown_name(names, keyed, values)?
    {
        return Err(error);
    }
    // A single field is the whole payload: nothing frames it.
    if let [Some(_)] = fields[..] {
        fields.clear();
    }
    Ok(Sample { key, attributes, payload, fields })
}

/// The error for a name that is not in the schema, if there is one.
fn unknown_name(names: &Names, keyed: bool, values: &Bound<'_, PyDict>) -> PyResult<Option<PyErr>> {
    let known: Vec<&str> = names.all().map(|(name, _)| name.text()).collect();
    for name in values.keys() {
        let name: String = name.extract()?;
        if !(known.contains(&name.as_str()) || keyed && name == "key") {
            let what = format!("{name:?} is not in the schema (there are: {})", known.join(", "));
            return Ok(Some(PyTypeError::new_err(what)));
        }
    }
    Ok(None)
}

impl Writer {
    /// Threads and written data belong to the process that created the writer.
    fn at_home(&self) -> Result<&ForkLock<Option<DatasetWriter>>, Raised> {
        let what = "the writer belongs to the process that this one was forked from: write there, or begin one here";
        if self.writer.is_current() { Ok(&self.writer) } else { Err(Raised::new("Forked", what)) }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut DatasetWriter) -> Result<T, Raised> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| {
            let mut place = lock(self.at_home()?)?;
            place.as_mut().ok_or_else(|| Raised::closed("writer")).and_then(work)
        });
        Ok(result?)
    }

    /// The sample that a dictionary describes, which would be `row` samples after those that were written.
    fn sample(&self, py: Python<'_>, values: &Bound<'_, PyDict>, row: usize) -> PyResult<Sample> {
        sample_of(&self.names, self.keyed, py, values).map_err(|error| {
            let taken = self.with(py, |writer| Ok(writer.taken())).ok();
            in_sample(error, taken.map(|taken| taken + row as u64), values)
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        logging::listen(py)?;
        let finished = py.detach(|| -> Result<_, Raised> {
            let Some(writer) = lock(self.at_home()?)?.take() else { return Ok(()) };
            let taken = writer.taken();
            writer.finish()?;
            // The writer was already closed.
            let _ = self.written.set(taken);
            Ok(())
        });
        logging::delivered(py, finished)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let is_here = self.writer.is_current();
        match self.writer.get_mut().take() {
            Some(writer) if is_here => release(writer),
            // Discarding would remove what the other process writes.
            elsewhere => std::mem::forget(elsewhere),
        }
    }
}

#[pymethods]
impl Writer {
    /// Begin the dataset `path`. schema: names and types; "bytes", "str" and arrays such as "float32[768]" are fields,
    /// "int64", "float32", "bool" and similar types are attributes. append: add to the existing dataset as a new
    /// generation, with its schema.
    #[new]
    #[pyo3(signature = (path, schema=None, *, keyed=true, append=false, overwrite=false, metadata=None, compress=None, chunk_bytes=262_144, segment_bytes=4_294_967_296, align="1", hash_seed=0, jobs=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn python_new(
        py: Python<'_>,
        path: PathBuf,
        schema: Option<&Bound<'_, PyDict>>,
        keyed: bool,
        append: bool,
        overwrite: bool,
        metadata: Option<&Bound<'_, PyAny>>,
        compress: Option<&str>,
        chunk_bytes: u64,
        segment_bytes: u64,
        align: &str,
        hash_seed: u64,
        jobs: Option<usize>,
    ) -> PyResult<Self> {
        let user = metadata.map(user_metadata).transpose()?;
        let compression = compression(compress)?;
        let jobs = jobs_of(jobs)?;
        if append {
            if schema.is_some() {
                return Err(Raised::option("append=True: the schema is that of the dataset").into());
            }
            let present = py.detach(|| existing(&path)).map_err(Raised::from)?;
            let schema = present.metadata.schema.clone();
            let metadata = user.map(|user| Metadata { schema: schema.clone(), user });
            let options =
                AppendOptions { metadata, segment_size: segment_bytes, compression, jobs, ..AppendOptions::default() };
            let writer = py.detach(|| DatasetWriter::append(&path, options)).map_err(Raised::from)?;
            let keyed = present.keyed;
            let names = Names::of(&schema, false);
            return Ok(Self { path, names, keyed, writer: ForkLock::new(Some(writer)), written: OnceLock::new() });
        }
        let schema = schema.ok_or_else(|| PyTypeError::new_err("schema is missing: a dictionary of name to type"))?;
        let schema = schema_of(schema)?;
        if schema.attribute("key").is_some() || schema.field("key").is_some() {
            return Err(Raised::option(
                "schema: \"key\" is the sample's key; choose another name for the attribute or field",
            )
            .into());
        }
        let names = Names::of(&schema, false);
        let geometry = Geometry { chunk_size: chunk_size(chunk_bytes)?, alignment: alignment(align)?, hash_seed };
        let options = WriterOptions {
            geometry,
            segment_size: segment_bytes,
            compression,
            keyed,
            jobs,
            overwrite,
            ..WriterOptions::with_metadata(Metadata { schema, user: user.unwrap_or_default() })
        };
        let writer = py.detach(|| DatasetWriter::create(&path, options)).map_err(Raised::from)?;
        Ok(Self { path, names, keyed, writer: ForkLock::new(Some(writer)), written: OnceLock::new() })
    }

    /// Write a sample: its key, and a value for every name of the schema; a value that is omitted, or None, is missing.
    #[pyo3(signature = (**values))]
    fn write(&self, py: Python<'_>, values: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let empty = PyDict::new(py);
        let sample = self.sample(py, values.unwrap_or(&empty), 0)?;
        self.with(py, |writer| Ok(writer.write(sample)?))
    }

    /// Write several samples, given as columns of equal length.
    #[pyo3(signature = (**columns))]
    fn write_batch(&self, py: Python<'_>, columns: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let empty = PyDict::new(py);
        let columns = columns.unwrap_or(&empty);
        let mut len = None;
        for (name, column) in columns {
            if column.is_instance_of::<PyString>() || column.is_instance_of::<PyBytes>() {
                let what = format!("{name}: expected a value for each sample, as a list has, found {}", shown(&column));
                return Err(PyTypeError::new_err(what));
            }
            let found = column.len()?;
            let expected = *len.get_or_insert(found);
            if found != expected {
                let what = format!("{name}: {found} values, the column before has {expected}");
                return Err(Raised::option(what).into());
            }
        }
        let count = len.unwrap_or(0); // no columns, no samples
        let mut samples = Vec::with_capacity(count);
        for row in 0..count {
            let values = PyDict::new(py);
            for (name, column) in columns {
                values.set_item(name, column.get_item(row)?)?;
            }
            samples.push(self.sample(py, &values, row)?);
        }
        self.with(py, |writer| Ok(writer.write_batch(samples)?))
    }

    /// The number of samples written so far; also available once the writer was closed.
    #[getter]
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        if let Some(written) = self.written.get() {
            return Ok(*written);
        }
        self.with(py, |writer| Ok(writer.taken()))
    }

    /// Finish the dataset: after this it exists under its name.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.finish(py)
    }

    /// Discard the dataset: nothing appears under the name.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| -> Result<_, Raised> {
            let writer = lock(self.at_home()?)?.take();
            if let Some(writer) = writer {
                writer.discard();
            }
            Ok(())
        })?)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, *_exception))]
    fn __exit__(&self, py: Python<'_>, kind: &Bound<'_, PyAny>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        if !self.writer.is_current() {
            // A forked process left the block: the writer stays with the process that created it.
            return Ok(());
        }
        if kind.is_none() { self.close(py) } else { self.discard(py) }
    }

    fn __repr__(&self) -> String {
        format!("<grainstore.Writer {}>", grainstore_format::shown_path(&self.path))
    }
}
