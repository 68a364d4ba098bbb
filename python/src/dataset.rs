//! A dataset, or a view of some of its samples.

use std::str::FromStr;
use std::sync::Arc;

use grainstore_format::memory::reserve;
use grainstore_format::shown_path;
use grainstore_reader::Expression;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyInt, PyList, PySlice, PyString, PyTuple};

use crate::argument::{indices, integer, shown, truth_values};
use crate::arrow;
use crate::batch::Batch;
use crate::column;
use crate::epoch::{Epoch, EpochArguments};
use crate::error::Raised;
use crate::key;
use crate::keys::{Keys, find};
use crate::logging;
use crate::numpy::{self, Dtype};
use crate::opened::{Opened, SharedReader};
use crate::opening;
use crate::sample;
use crate::sample_file::SampleBytes;
use crate::samples::Samples;
use crate::schema::{ColumnRef, Names};
use crate::selection::{Selection, Slice};
use crate::weights::Weights;

/// The samples of a dataset: all, or those of a view. Nothing is read before it is requested.
#[pyclass(frozen, module = "grainstore")]
pub(crate) struct Dataset {
    pub(crate) shared: Arc<SharedReader>,
    pub(crate) selection: Selection,
    /// Those of the dataset, or what a view of some columns shows of them.
    pub(crate) names: Arc<Names>,
}

/// The error for an unknown key, which may be the name of a column.
fn unknown_key(opened: &Opened, names: &Names, key: &[u8]) -> Raised {
    let unknown = if opened.reader.collection().is_keyed() {
        Raised::no_such_key(key)
    } else {
        Raised::new("NoSuchKey", "the samples of this dataset have no keys")
    };
    match std::str::from_utf8(key).ok().and_then(|name| names.find(name).ok()) {
        None | Some(ColumnRef::Key) => unknown,
        Some(ColumnRef::Attribute(_)) => unknown.hinting("it is an attribute: column() gives its values"),
        Some(ColumnRef::Field(_)) => unknown.hinting("it is a field: a sample has it, as in ds[0][name]"),
    }
}

fn is_key(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>()
}

impl Dataset {
    fn view(&self, selection: Selection) -> Self {
        Self { shared: Arc::clone(&self.shared), selection, names: Arc::clone(&self.names) }
    }

    fn sample_of<'py>(&self, number: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.shared.get()?;
        let ordinal = self.selection.ordinal(integer(number, self.selection.len())?)?;
        Ok(sample::read(number.py(), &opened, &self.names, ordinal)?.into_any())
    }

    fn ordinals_of(&self, given: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        Ok(self.selection.ordinals(&indices(given, self.selection.len())?)?)
    }

    fn find_here(&self, py: Python<'_>, key: &[u8]) -> Result<Option<u64>, Raised> {
        let found = py.detach(|| find(&self.shared, key))?;
        Ok(found.filter(|&ordinal| self.selection.contains(ordinal)))
    }

    fn ordinal_of_key(&self, key: &Bound<'_, PyAny>, opened: &Opened) -> PyResult<u64> {
        let key_bytes = key::from_python(key)?;
        let keyed = opened.reader.collection().is_keyed();
        let found = if keyed { self.find_here(key.py(), &key_bytes)? } else { None };
        Ok(found.ok_or_else(|| unknown_key(opened, &self.names, &key_bytes))?)
    }

    fn batch_of(&self, py: Python<'_>, ordinals: &[u64]) -> PyResult<Batch> {
        let opened = self.shared.get()?;
        let batch = logging::delivered(py, py.detach(|| opened.reader.get_batch(ordinals)).map_err(Raised::from))?;
        Ok(Batch::new(batch, &opened, &self.names))
    }

    fn json<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (text,))
    }
}

#[pymethods]
impl Dataset {
    fn __len__(&self) -> PyResult<usize> {
        self.shared.get()?;
        Ok(usize::try_from(self.selection.len())?)
    }

    /// A sample by its number or its key, or a view for a slice.
    fn __getitem__<'py>(&self, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = item.py();
        if item.is_exact_instance_of::<PyInt>() {
            return self.sample_of(item);
        }
        if let Ok(slice) = item.cast::<PySlice>() {
            self.shared.get()?;
            let slice = slice.indices(isize::try_from(self.selection.len())?)?;
            let start = i64::try_from(slice.start)?;
            let step = i64::try_from(slice.step)?;
            let slice = Slice { start, step, count: slice.slicelength as u64 };
            return Ok(Bound::new(py, self.view(self.selection.slice(slice)?))?.into_any());
        }
        if is_key(item) {
            let opened = self.shared.get()?;
            return Ok(sample::read(py, &opened, &self.names, self.ordinal_of_key(item, &opened)?)?.into_any());
        }
        if item.hasattr("__index__")? {
            return self.sample_of(item);
        }
        let found = shown(item);
        Err(PyTypeError::new_err(format!(
            "a sample has a number or a key, not {found}; get_batch and select take several"
        )))
    }

    /// A sample, or one of its fields, as a binary file that reads only what is asked for.
    #[pyo3(signature = (item, field=None))]
    fn open<'py>(&self, item: &Bound<'py, PyAny>, field: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let py = item.py();
        let opened = self.shared.get()?;
        let ordinal = if is_key(item) {
            self.ordinal_of_key(item, &opened)?
        } else {
            self.selection.ordinal(integer(item, self.selection.len())?)?
        };
        let file = py.detach(|| SampleBytes::open(&opened, &self.names, ordinal, field))?;
        let name = format!("sample {ordinal}");
        py.import("grainstore._sample_file")?.getattr("SampleFile")?.call1((file, name))
    }

    /// Samples by their numbers, read together: a list of dictionaries. PyTorch's DataLoader calls this.
    fn __getitems__<'py>(&self, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = indices.py();
        self.batch_of(py, &self.ordinals_of(indices)?)?.samples(py)
    }

    fn __iter__(&self) -> PyResult<Samples> {
        self.shared.get()?;
        Ok(Samples::new(Arc::clone(&self.shared), self.selection.clone(), Arc::clone(&self.names)))
    }

    /// Whether a sample has this key.
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let keyed = self.shared.get()?.reader.collection().is_keyed();
        let key_bytes = key::from_python(key)?;
        Ok(keyed && self.find_here(key.py(), &key_bytes)?.is_some())
    }

    /// Samples by their numbers, in the given order, read together: columns.
    fn get_batch(&self, indices: &Bound<'_, PyAny>) -> PyResult<Batch> {
        self.batch_of(indices.py(), &self.ordinals_of(indices)?)
    }

    /// The number of the sample that has this key in the whole dataset, or None.
    fn find(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let key_bytes = key::from_python(key)?;
        Ok(self.find_here(key.py(), &key_bytes)?)
    }

    /// The keys, in the order of the samples.
    fn keys(&self) -> PyResult<Keys> {
        if !self.shared.get()?.reader.collection().is_keyed() {
            return Err(Raised::new("NoSuchName", "the samples of this dataset have no keys").into());
        }
        Ok(Keys::new(Arc::clone(&self.shared), self.selection.clone()))
    }

    /// A view of the samples with these numbers, in this order.
    fn select(&self, indices: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.shared.get()?;
        Ok(self.view(Selection::List(self.ordinals_of(indices)?.into())))
    }

    /// A view whose samples have only these columns, by their names in `schema`, and "key" if the dataset was opened with
    /// keys. `filter` and `open` know the others all the same.
    fn select_columns(&self, names: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.shared.get()?;
        if is_key(names) {
            return Err(PyTypeError::new_err(format!(
                "select_columns takes names, [...], not the one name {}",
                shown(names)
            )));
        }
        let wanted = names.try_iter()?.map(|name| name?.extract()).collect::<PyResult<Vec<String>>>()?;
        if wanted.is_empty() {
            return Err(Raised::option("select_columns: no column is named, expected one or more").into());
        }
        Ok(Self { names: Arc::new(self.names.narrowed(&wanted)?), ..self.view(self.selection.clone()) })
    }

    /// A view of the samples that match an expression such as "label == 3 and width >= 64", or of those that are true in
    /// a mask with a truth value for each sample, such as `ds.column("label") == 3`. Masked values are not true.
    fn filter(&self, py: Python<'_>, expression: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(expression) = expression.cast::<PyString>() else {
            return match truth_values(expression)? {
                true => self.select(expression),
                false => Err(PyTypeError::new_err(format!(
                    "filter takes an expression such as \"label == 3\", or a mask such as ds.column(\"label\") == 3, not {}; \
                     select takes numbers of samples",
                    shown(expression)
                ))),
            };
        };
        let expression = expression.to_str()?;
        let expression = Expression::from_str(expression).map_err(Raised::from)?;
        let opened = self.shared.get()?;
        let wanted = py.detach(|| expression.select_from(opened.reader.collection())).map_err(Raised::from)?;
        Ok(self.view(self.selection.filter(wanted)?))
    }

    /// The values of an attribute, an array with one value per sample: without a copy from the index, or a copy for a
    /// view. A masked array if samples may lack the attribute.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        column::values(py, self, name)
    }

    /// The categories of an attribute, in the order of their codes: `categories(name)[code]` is the text of a code of
    /// `column(name)`. Of an integer attribute, the names of its numbers: `class_names` of the metadata for `label`,
    /// `NAME_names` for any other.
    fn categories<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        column::categories(py, self, name)
    }

    /// Keys and attributes as a stream of Arrow batches: `pyarrow.table(ds)`, `polars.DataFrame(ds)` and DuckDB call
    /// this. The requested schema is not used: the columns have their own types.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::stream(py, self)
    }

    /// The names and types of these columns: `pyarrow.schema(ds)` calls this.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(py, self)
    }

    /// The ordinals that the samples of this view have in the whole dataset.
    #[getter]
    fn ordinals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ordinals = py.detach(|| -> Result<_, Raised> {
            let ordinals = self.selection.ordinals_at(0..self.selection.len())?;
            let mut bytes = Vec::new();
            reserve(&mut bytes, (ordinals.len() as u64).saturating_mul(8))?;
            bytes.extend(ordinals.iter().flat_map(|ordinal| ordinal.to_le_bytes()));
            Ok(bytes)
        })?;
        numpy::array_of(py, ordinals, &Dtype::INT64)
    }

    /// Names and types of fields and attributes, in the form that `Writer` takes.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.shared.get()?;
        self.names.types(py)
    }

    /// The metadata stored with the dataset, such as class_names.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.shared.get()?;
        self.json(py, opened.reader.collection().user_metadata().text())
    }

    /// Whether the samples have keys.
    #[getter]
    fn is_keyed(&self) -> PyResult<bool> {
        Ok(self.shared.get()?.reader.collection().is_keyed())
    }

    /// The identifier of the dataset and its generation.
    #[getter]
    fn fingerprint(&self) -> PyResult<String> {
        Ok(self.shared.get()?.fingerprint().to_string())
    }

    /// The paths that were opened.
    #[getter]
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let opened = self.shared.get()?;
        PyList::new(py, opened.how.paths.iter().map(|path| path.as_os_str()))
    }

    /// Counts, sizes, and how files are read; this reads the index.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let opened = self.shared.get()?;
        let reader = &opened.reader;
        let collection = opened.reader.collection();
        let (stored, payload) = py
            .detach(|| Ok((collection.stored_bytes()?, collection.payload_bytes()?)))
            .map_err(|error: grainstore_store::StoreError| Raised::from(error))?;
        let io = reader.io();
        let stats = PyDict::new(py);
        stats.set_item("samples", collection.sample_count())?;
        stats.set_item("segments", collection.segment_count())?;
        stats.set_item("stored_bytes", stored)?;
        stats.set_item("payload_bytes", payload)?;
        stats.set_item("segment_bytes", collection.segment_bytes())?;
        stats.set_item("generation", opened.generation())?;
        stats.set_item("io", io.mode.name())?;
        stats.set_item("io_why", io.why)?;
        stats.set_item("notices", reader.notices())?;
        Ok(stats)
    }

    /// Begin an epoch over the samples of this view, or only plan it. Use `Loader` instead.
    #[pyo3(signature = (*, order="auto", seed=0, epoch=0, batch_size=256, rank=0, world_size=1, tail="short", window_bytes=None, lanes=None, group=None, on_damage="raise", state=None, followed=false, planned=false, weights=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn _epoch(
        &self,
        py: Python<'_>,
        order: &str,
        seed: u64,
        epoch: u64,
        batch_size: usize,
        rank: u64,
        world_size: u64,
        tail: &str,
        window_bytes: Option<u64>,
        lanes: Option<u64>,
        group: Option<u64>,
        on_damage: &str,
        state: Option<&str>,
        followed: bool,
        planned: bool,
        weights: Option<&Bound<'_, Weights>>,
    ) -> PyResult<Epoch> {
        let opened = self.shared.get()?;
        let arguments = EpochArguments {
            order,
            seed,
            epoch,
            batch_size,
            rank,
            world_size,
            tail,
            window_bytes,
            lanes,
            group,
            on_damage,
            state,
            followed,
            names: &self.names,
            weights: weights.map(|weights| weights.get().shared()),
        };
        logging::listen(py)?;
        let epoch = py.detach(|| {
            if planned { arguments.plan(opened, &self.selection) } else { arguments.begin(opened, &self.selection) }
        });
        logging::delivered(py, epoch)
    }

    /// Weights of the samples of this view, an array of float64, by which an epoch draws `num_samples` of them.
    fn _weights(&self, py: Python<'_>, weights: &Bound<'_, PyAny>, num_samples: u64) -> PyResult<Weights> {
        self.shared.get()?;
        let given = PyBuffer::<f64>::get(weights)?.to_vec(py)?;
        Ok(py.detach(|| Weights::of(&self.selection, given, num_samples))?)
    }

    /// The key of sample `ordinal` of the whole dataset; None if it has none, or it cannot be read.
    fn _key_of<'py>(&self, py: Python<'py>, ordinal: u64) -> Option<Bound<'py, PyBytes>> {
        let opened = self.shared.get().ok()?;
        let key = py.detach(|| opened.reader.collection().key(ordinal)).ok().flatten()?;
        Some(PyBytes::new(py, &key))
    }

    /// Close files and free memory. Arrays and views that were returned stay valid.
    fn close(&self, py: Python<'_>) {
        let opened = self.shared.close();
        py.detach(|| drop(opened));
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        opening::reduced(py, self)
    }

    fn __repr__(&self) -> String {
        let Ok(opened) = self.shared.get() else { return "<grainstore.Dataset, closed>".into() };
        let all = opened.reader.collection().sample_count();
        let path = opened.how.paths.iter().map(shown_path).collect::<Vec<_>>().join(", ");
        let len = self.selection.len();
        let of = if len == all { String::new() } else { format!(" of {all}") };
        let names: Vec<&str> = self.names.all().map(|(name, _)| name.text()).collect();
        format!("<grainstore.Dataset {path}: {len}{of} samples of {}>", names.join(", "))
    }
}
