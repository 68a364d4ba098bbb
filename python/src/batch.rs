//! Several samples at once, as columns: an attribute is an array, a field is buffers over the batch's memory block.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use grainstore_format::memory::reserve;
use grainstore_format::{AttributeType, Categories, FieldType, to_usize};
use grainstore_store::Collection;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice, PyString};

use crate::argument::place;
use crate::buffers::Buffers;
use crate::error::Raised;
use crate::key;
use crate::numpy::{self, Dtype};
use crate::opened::Opened;
use crate::payloads::Payloads;
use crate::sample::{PayloadView, SampleParts};
use crate::schema::{ColumnRef, Name, Names, array_dimensions, text};
use crate::view::Bytes;

/// Samples of an epoch, or the samples that were requested.
#[pyclass(frozen, module = "grainstore")]
#[derive(Clone)]
pub(crate) struct Batch(Arc<Inner>);

/// What batches need of the dataset: not the reader, which may be closed before them.
#[derive(Clone)]
pub(crate) struct BatchParts {
    collection: Collection,
    names: Arc<Names>,
    payloads: Payloads,
}

impl BatchParts {
    pub(crate) fn of(opened: &Opened, names: &Arc<Names>) -> Self {
        let collection = opened.reader.collection().clone();
        Self { collection, names: Arc::clone(names), payloads: opened.how.payloads }
    }
}

struct Inner {
    batch: grainstore_reader::Batch,
    collection: Collection,
    names: Arc<Names>,
    payloads: Payloads,
    block: Arc<dyn Bytes>,
    /// The byte ranges of the fields in each sample's payload; computed when a field is first requested.
    fields: OnceLock<Vec<Vec<Option<Range<u64>>>>>,
    /// What a field was decoded to.
    decoded: Option<Decoded>,
}

/// A field's values, which are not those of the dataset any more.
pub(crate) struct Decoded {
    /// The number of the field.
    pub(crate) field: usize,
    /// An array with one row per sample.
    pub(crate) rows: Py<PyAny>,
    /// Samples that were left out as they could not be decoded, and why.
    pub(crate) skipped: Vec<(u64, String)>,
}

struct BatchBlock(grainstore_reader::Batch);

impl Bytes for BatchBlock {
    fn bytes(&self) -> &[u8] {
        self.0.block()
    }
}

impl Batch {
    pub(crate) fn new(batch: grainstore_reader::Batch, opened: &Opened, names: &Arc<Names>) -> Self {
        Self::of(batch, BatchParts::of(opened, names))
    }

    pub(crate) fn of(batch: grainstore_reader::Batch, parts: BatchParts) -> Self {
        let block: Arc<dyn Bytes> = Arc::new(BatchBlock(batch.clone()));
        let BatchParts { collection, names, payloads } = parts;
        Self(Arc::new(Inner { batch, collection, names, payloads, block, fields: OnceLock::new(), decoded: None }))
    }

    /// The samples at `places`, with a field that was decoded.
    pub(crate) fn with_decoded(&self, places: &[usize], decoded: Decoded) -> Self {
        let inner = &*self.0;
        let batch = if places.len() == self.len() { inner.batch.clone() } else { inner.batch.keep(places) };
        Self(Arc::new(Inner {
            batch,
            collection: inner.collection.clone(),
            names: Arc::clone(&inner.names),
            payloads: inner.payloads,
            block: Arc::clone(&inner.block),
            fields: OnceLock::new(),
            decoded: Some(decoded),
        }))
    }

    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }

    pub(crate) fn reader_batch(&self) -> &grainstore_reader::Batch {
        &self.0.batch
    }

    /// The byte range of the field in the batch's block, for every sample.
    pub(crate) fn field_spans(&self, py: Python<'_>, field: usize) -> Result<Vec<Option<Range<usize>>>, Raised> {
        self.0.spans(py, field)
    }

    /// An error that concerns the sample at a place, which it names.
    pub(crate) fn failed(&self, place: usize, kind: &'static str, reason: &str) -> Raised {
        let Some(&ordinal) = self.0.batch.ordinals().get(place) else {
            return Raised::bug("a batch has no such sample");
        };
        let key = self.0.collection.key(ordinal).ok().flatten().map(|key| key.to_vec());
        let named = key.as_ref().map(|key| format!(" (key \"{}\")", grainstore_format::escape_bytes(key)));
        let message = format!("sample {ordinal}{}: {reason}", named.unwrap_or_default());
        Raised::new(kind, message).for_sample(Some(ordinal), key)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.batch.len()
    }

    /// Returns sample `number` of the batch, which must be below its length.
    pub(crate) fn sample<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyDict>> {
        let inner = &*self.0;
        let view = inner.batch.view(number);
        let whole = [Some(0..view.len() as u64)];
        let lost = || Raised::bug("a batch has no such sample");
        let fields = if inner.collection.has_field_columns() {
            inner.fields(py)?.get(number).ok_or_else(lost)?.as_slice()
        } else {
            &whole
        };
        let payload = PayloadView { owner: Arc::clone(&inner.block), start: view.start, fields };
        let ordinal = *inner.batch.ordinals().get(number).ok_or_else(lost)?;
        let parts =
            SampleParts { collection: &inner.collection, names: &inner.names, payloads: inner.payloads, ordinal };
        let sample = parts.to_dict(py, &payload)?;
        if let Some(decoded) = &inner.decoded
            && let Some((name, _)) = inner.names.fields.get(decoded.field)
        {
            sample.set_item(name.object(py), decoded.rows.bind(py).get_item(number)?)?;
        }
        Ok(sample)
    }

    pub(crate) fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let samples: PyResult<Vec<_>> = (0..self.len()).map(|number| self.sample(py, number)).collect();
        PyList::new(py, samples?)
    }
}

impl Inner {
    fn fields(&self, py: Python<'_>) -> Result<&[Vec<Option<Range<u64>>>], Raised> {
        if let Some(fields) = self.fields.get() {
            return Ok(fields);
        }
        let fields = py.detach(|| {
            let ordinals = self.batch.ordinals().iter().enumerate();
            let of_one = |(number, &ordinal)| self.collection.fields(ordinal, self.batch.view(number).len() as u64);
            ordinals.map(of_one).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(self.fields.get_or_init(|| fields))
    }

    /// The byte range of the field in the block, for every sample.
    fn spans(&self, py: Python<'_>, field: usize) -> Result<Vec<Option<Range<usize>>>, Raised> {
        let count = self.batch.len();
        if !self.collection.has_field_columns() {
            return Ok((0..count).map(|number| Some(self.batch.view(number))).collect());
        }
        let mut spans = Vec::with_capacity(count);
        for (number, fields) in self.fields(py)?.iter().enumerate() {
            let start = self.batch.view(number).start;
            let range = fields.get(field).ok_or_else(|| Raised::bug("a sample lacks a field of the schema"))?;
            spans.push(range.as_ref().map(|range| start + to_usize(range.start)..start + to_usize(range.end)));
        }
        Ok(spans)
    }

    fn field<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        if let Some(decoded) = self.decoded.as_ref().filter(|decoded| decoded.field == number) {
            return Ok(decoded.rows.bind(py).clone());
        }
        let spans = self.spans(py, number)?;
        match self.names.fields.get(number) {
            Some((name, FieldType::Str)) => {
                let one = |span: Option<Range<usize>>| span.map(|span| text(py, name, self.bytes(span)?)).transpose();
                let texts: Result<Vec<_>, Raised> = spans.into_iter().map(one).collect();
                Ok(PyList::new(py, texts?)?.into_any())
            }
            Some((name, kind @ FieldType::Array { element, shape })) if shape.is_open() => {
                self.ragged(py, &spans, (name, kind), &Dtype::of_element(element))
            }
            Some((name, kind @ FieldType::Array { element, shape })) => {
                self.stacked(py, &spans, (name, kind), &Dtype::of_element(element), shape.fixed_dimensions())
            }
            _ => Ok(Bound::new(py, Buffers::new(Arc::clone(&self.block), spans))?.into_any()),
        }
    }

    /// The bytes of a field. The store has checked that it is inside its sample's payload.
    fn bytes(&self, span: Range<usize>) -> Result<&[u8], Raised> {
        self.batch.block().get(span).ok_or_else(|| Raised::bug("a field is outside its batch"))
    }

    /// A list of arrays, each of its own shape, which are parts of one; `None` where a sample has none.
    fn ragged<'py>(
        &self,
        py: Python<'py>,
        spans: &[Option<Range<usize>>],
        (name, kind): (&Name, &FieldType),
        dtype: &Dtype,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = py.detach(|| self.rows(spans, (name, kind)))?;
        let elements = numpy::own_array(py, rows, dtype)?;
        let mut start = 0;
        let mut one = |span: &Option<Range<usize>>| {
            let Some(span) = span else { return Ok(py.None().into_bound(py)) };
            let dimensions = array_dimensions(name, kind, span.len())?;
            let end = start + to_usize(dimensions.iter().product());
            let part = elements.get_item(PySlice::new(py, start.cast_signed(), end.cast_signed(), 1))?;
            start = end;
            part.call_method1("reshape", (dimensions,))
        };
        let arrays: Vec<_> = spans.iter().map(&mut one).collect::<PyResult<_>>()?;
        Ok(PyList::new(py, arrays)?.into_any())
    }

    /// Arrays of one shape, stored one after the other.
    fn stacked<'py>(
        &self,
        py: Python<'py>,
        spans: &[Option<Range<usize>>],
        field: (&Name, &FieldType),
        dtype: &Dtype,
        shape: &[u64],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut all = vec![spans.len() as u64];
        all.extend_from_slice(shape);
        let rows = py.detach(|| self.rows(spans, field))?;
        let array = numpy::own_array(py, rows, dtype)?;
        if spans.iter().all(Option::is_some) {
            return array.call_method1("reshape", (all,));
        }
        let mut present = vec![spans.iter().flatten().count() as u64];
        present.extend_from_slice(shape);
        let array = array.call_method1("reshape", (present,))?;
        numpy::spread(py, array, spans.iter().map(|span| u8::from(span.is_some())).collect(), all)
    }

    /// The bytes of the arrays that are present.
    fn rows(&self, spans: &[Option<Range<usize>>], (name, kind): (&Name, &FieldType)) -> Result<Vec<u8>, Raised> {
        let count = spans.iter().flatten().count();
        let mut len = Some(0_usize);
        for span in spans.iter().flatten() {
            array_dimensions(name, kind, span.len())?;
            len = len.and_then(|len| len.checked_add(span.len()));
        }
        let mut rows = Vec::new();
        len.filter(|&len| rows.try_reserve_exact(len).is_ok())
            .ok_or_else(|| Raised::new("OutOfMemory", format!("no memory for {count} arrays of {}", kind.name())))?;
        for span in spans.iter().flatten() {
            rows.extend_from_slice(self.bytes(span.clone())?);
        }
        Ok(rows)
    }

    fn attribute<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some((name, kind)) = self.names.attributes.get(number) else { return Err(self.none_such().into()) };
        py.detach(|| gather(&self.collection, name.text(), self.batch.ordinals()))?.into_own_array(py, kind)
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let keys: Vec<_> = py.detach(|| {
            let ordinals = self.batch.ordinals().iter();
            ordinals.map(|&ordinal| key::of_keyed(&self.collection, ordinal)).collect::<Result<_, _>>()
        })?;
        let keys: PyResult<Vec<_>> = keys.iter().map(|key| key::to_python(py, key)).collect();
        Ok(PyList::new(py, keys?)?.into_any())
    }

    fn column<'py>(&self, py: Python<'py>, member: ColumnRef) -> PyResult<Bound<'py, PyAny>> {
        match member {
            ColumnRef::Key => self.keys(py),
            ColumnRef::Field(number) => self.field(py, number),
            ColumnRef::Attribute(number) => self.attribute(py, number),
        }
    }

    fn none_such(&self) -> Raised {
        Raised::new("NoSuchName", "there is no such column")
    }
}

/// The values of an attribute for some samples.
pub(crate) struct Gathered {
    /// Little-endian; zeros if the value is missing. For categories, their codes in the whole collection.
    values: Vec<u8>,
    /// Bytes per value.
    width: u32,
    /// One byte per sample, if the dataset records which samples have a value.
    valid: Option<Vec<u8>>,
}

impl Gathered {
    /// A read-only array; a masked one if samples may lack the attribute.
    pub(crate) fn into_array<'py>(self, py: Python<'py>, kind: &AttributeType) -> PyResult<Bound<'py, PyAny>> {
        let values = numpy::array_of(py, self.values, &Dtype::of(kind, self.width))?;
        masked(py, values, self.valid)
    }

    /// The same, but writable.
    fn into_own_array<'py>(self, py: Python<'py>, kind: &AttributeType) -> PyResult<Bound<'py, PyAny>> {
        let values = numpy::own_array(py, self.values, &Dtype::of(kind, self.width))?;
        masked(py, values, self.valid)
    }
}

fn masked<'py>(py: Python<'py>, values: Bound<'py, PyAny>, valid: Option<Vec<u8>>) -> PyResult<Bound<'py, PyAny>> {
    match valid {
        None => Ok(values),
        Some(valid) => numpy::masked(py, values, valid),
    }
}

/// The values of attribute `name` for `ordinals`.
pub(crate) fn gather(collection: &Collection, name: &str, ordinals: &[u64]) -> Result<Gathered, Raised> {
    let columns = collection.column(name)?;
    let parts = columns.parts();
    let (_, first) = parts.first().ok_or_else(|| Raised::bug("a collection has no datasets"))?;
    // One dataset's own codes are those of the collection.
    let merged = match (first.kind, parts.len()) {
        (AttributeType::Category, 2..) => Some(collection.merged_categories(name)?),
        _ => None,
    };
    let width = merged.as_ref().map_or(first.width, |merged| Categories::code_width(merged.categories.len()));
    let value_len = to_usize(u64::from(width));
    let has_validity = parts.iter().any(|(_, column)| column.validity.is_some());
    let mut values = Vec::new();
    reserve(&mut values, (ordinals.len() as u64).saturating_mul(u64::from(width)))?;
    let mut valid = has_validity.then(Vec::new);
    if let Some(valid) = &mut valid {
        reserve(valid, ordinals.len() as u64)?;
    }
    for &ordinal in ordinals {
        let part = parts.partition_point(|(first, _)| *first <= ordinal).checked_sub(1);
        let outside = || Raised::bug("an ordinal is outside its column");
        let number = part.ok_or_else(outside)?;
        let (first, column) = parts.get(number).ok_or_else(outside)?;
        match &merged {
            Some(merged) => {
                let code = column.code(ordinal - first).and_then(|code| usize::try_from(code).ok());
                let code = code.and_then(|code| merged.codes.get(number)?.get(code)).copied().unwrap_or(0); // missing
                values.extend_from_slice(&code.to_le_bytes()[..value_len]);
            }
            None if column.width != width => return Err(Raised::bug("the columns of datasets have different widths")),
            None => {
                let index = to_usize(ordinal - first);
                let bytes = column.bytes.get(index * value_len..(index + 1) * value_len);
                values.extend_from_slice(bytes.ok_or_else(outside)?);
            }
        }
        if let Some(valid) = &mut valid {
            valid.push(u8::from(column.validity.is_none_or(|validity| validity.get(ordinal - first))));
        }
    }
    Ok(Gathered { values, width, valid })
}

#[pymethods]
impl Batch {
    /// The number of samples in the batch.
    fn __len__(&self) -> usize {
        self.len()
    }

    /// A column by its name, or a sample by its index.
    fn __getitem__<'py>(&self, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = item.py();
        if let Ok(name) = item.cast::<PyString>() {
            let inner = &*self.0;
            return inner.column(py, inner.names.find(name.to_str()?)?);
        }
        let place = place(item, self.len(), "a batch has columns by name and samples by number")?;
        Ok(self.sample(py, place)?.into_any())
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        let name = name.extract::<&str>();
        name.is_ok_and(|name| self.0.names.find(name).is_ok())
    }

    /// The names of the columns.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    /// The names of the columns: the key if it was requested, then fields and attributes.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.names.all().map(|(name, _)| name.object(py).clone()))
    }

    /// The columns, in the order of `keys`.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let columns: PyResult<Vec<_>> = self.0.names.all().map(|(_, member)| self.0.column(py, member)).collect();
        PyList::new(py, columns?)
    }

    /// Pairs of name and column, in the order of `keys`.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut items = Vec::new();
        for (name, member) in self.0.names.all() {
            items.push((name.object(py), self.0.column(py, member)?));
        }
        PyList::new(py, items)
    }

    /// A column by its name; `default` if there is none of that name.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(&self, py: Python<'py>, name: &str, default: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.names.find(name) {
            Ok(member) => self.0.column(py, member),
            Err(_) => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// All columns by their names.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, member) in self.0.names.all() {
            columns.set_item(name.object(py), self.0.column(py, member)?)?;
        }
        Ok(columns)
    }

    /// All samples, one dictionary each.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.samples(py)
    }

    /// The samples' numbers in the dataset.
    #[getter]
    fn ordinals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numbers(py, self.0.batch.ordinals())
    }

    /// The samples' positions in the epoch; empty if the batch does not belong to an epoch.
    #[getter]
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numbers(py, self.0.batch.positions())
    }

    /// For each sample, how often the view or draw of the epoch has it before this visit: with the ordinal, it names the
    /// visit. Zeros if no sample is there twice.
    #[getter]
    fn repeats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let repeats = self.0.batch.repeats();
        if repeats.is_empty() { numbers(py, &vec![0; self.len()]) } else { numbers(py, repeats) }
    }

    /// How many samples at the end of the batch repeat samples of the epoch's start.
    #[getter]
    fn padded_count(&self) -> usize {
        self.0.batch.padded_count()
    }

    /// The samples missing from the batch because they are damaged or do not decode: pairs of ordinal and reason.
    #[getter]
    fn skipped<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let skipped = self.0.batch.skipped().iter();
        let undecoded = self.0.decoded.iter().flat_map(|decoded| decoded.skipped.iter().cloned());
        let all: Vec<_> = skipped.map(|one| (one.ordinal, one.error.to_string())).chain(undecoded).collect();
        PyList::new(py, all)
    }

    fn __repr__(&self) -> String {
        let names: Vec<&str> = self.0.names.all().map(|(name, _)| name.text()).collect();
        format!("<grainstore.Batch of {} samples: {}>", self.len(), names.join(", "))
    }
}

fn numbers<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    numpy::array_of(py, numbers.iter().flat_map(|number| number.to_le_bytes()).collect(), &Dtype::INT64)
}
