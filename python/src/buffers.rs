//! A field of many samples: buffers over one block of memory.

use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyTuple};

use crate::argument::place;
use crate::error::Raised;
use crate::numpy::{self, Dtype};
use crate::view::{Bytes, Memory, bytes_of_each};

/// The bytes of a field for each sample of a batch, not copied; a sample that lacks the field has `None`.
#[pyclass(frozen, sequence, module = "grainstore")]
pub(crate) struct Buffers {
    block: Arc<dyn Bytes>,
    spans: Vec<Option<Range<usize>>>,
}

impl Buffers {
    /// Byte ranges of `block`, all inside it.
    pub(crate) fn new(block: Arc<dyn Bytes>, spans: Vec<Option<Range<usize>>>) -> Self {
        Self { block, spans }
    }

    fn bytes(&self, span: &Range<usize>) -> Result<&[u8], Raised> {
        self.block.bytes().get(span.clone()).ok_or_else(|| Raised::bug("a buffer is outside its block"))
    }

    fn view<'py>(&self, py: Python<'py>, span: Option<&Range<usize>>) -> PyResult<Bound<'py, PyAny>> {
        match span {
            None => Ok(py.None().into_bound(py)),
            Some(span) => Ok(Memory::of(Arc::clone(&self.block), span.clone())?.view(py)?.into_any()),
        }
    }

    fn numbers<'py>(&self, py: Python<'py>, of: impl Fn(&Range<usize>) -> usize) -> PyResult<Bound<'py, PyAny>> {
        let number = |span: &Option<Range<usize>>| span.as_ref().map_or(0, |span| of(span) as u64).to_le_bytes();
        numpy::array_of(py, self.spans.iter().flat_map(number).collect(), &Dtype::INT64)
    }
}

#[pymethods]
impl Buffers {
    /// Make buffers of `bytes` objects; `None` means missing.
    #[new]
    fn python_new(items: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut block = Vec::new();
        let mut spans = Vec::new();
        for item in items.try_iter()? {
            let item = item?;
            if item.is_none() {
                spans.push(None);
                continue;
            }
            let start = block.len();
            block.extend_from_slice(item.cast::<PyBytes>()?.as_bytes());
            spans.push(Some(start..block.len()));
        }
        Ok(Self { block: Arc::new(block), spans })
    }

    fn __len__(&self) -> usize {
        self.spans.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if let Ok(slice) = index.cast::<PySlice>() {
            let slice = slice.indices(isize::try_from(self.spans.len())?)?;
            let at = |number: usize| slice.start + slice.step * number.cast_signed();
            let spans = (0..slice.slicelength).map(|number| self.spans[at(number).cast_unsigned()].clone());
            let part = Self { block: Arc::clone(&self.block), spans: spans.collect() };
            return Ok(Bound::new(py, part)?.into_any());
        }
        let place = place(index, self.spans.len(), "an index in a batch is an integer or a slice")?;
        self.view(py, self.spans[place].as_ref())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let views: PyResult<Vec<_>> = self.spans.iter().map(|span| self.view(py, span.as_ref())).collect();
        Ok(PyList::new(py, views?)?.try_iter()?.into_any())
    }

    /// Copies of the buffers, as `bytes`.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let part = |span: &Option<Range<usize>>| span.as_ref().map(|span| self.bytes(span)).transpose();
        let parts: Vec<_> = self.spans.iter().map(part).collect::<Result<_, _>>()?;
        bytes_of_each(py, &parts)
    }

    /// The memory block that contains all buffers, as an array of bytes. The bytes between them are arbitrary.
    #[getter]
    fn block<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::array(py, Memory::whole(Arc::clone(&self.block)), &Dtype::UINT8)
    }

    /// The offset in the block at which each buffer starts.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numbers(py, |span| span.start)
    }

    /// The length of each buffer in bytes.
    #[getter]
    fn lengths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numbers(py, |span| span.len())
    }

    /// Which samples lack the field, an array of truth values.
    #[getter]
    fn missing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::array_of(py, self.spans.iter().map(|span| u8::from(span.is_none())).collect(), &Dtype::BOOL)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        Ok((py.get_type::<Self>().into_any(), PyTuple::new(py, [slf.get().tolist(py)?])?))
    }

    fn __repr__(&self) -> String {
        let len: usize = self.spans.iter().flatten().map(|span| span.len()).sum();
        format!("<grainstore.Buffers: {} of {len} bytes in all>", self.spans.len())
    }
}
