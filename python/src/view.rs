//! Memory that Python reads without a copy.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::error::Raised;

/// Bytes that neither move nor change as long as their owner lives.
pub(crate) trait Bytes: Send + Sync {
    /// The bytes; every call returns the same ones.
    fn bytes(&self) -> &[u8];
}

impl Bytes for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Bytes that NumPy and memoryview read in place, and never change.
#[pyclass(frozen, module = "grainstore._core")]
pub(crate) struct Memory {
    owner: Arc<dyn Bytes>,
    range: Range<usize>,
}

impl Memory {
    /// The bytes of `owner` in `range`, which must be inside them.
    pub(crate) fn of(owner: Arc<dyn Bytes>, range: Range<usize>) -> Result<Self, Raised> {
        match owner.bytes().get(range.clone()) {
            Some(_) => Ok(Self { owner, range }),
            None => Err(Raised::bug("a byte range is outside its memory")),
        }
    }

    pub(crate) fn whole(owner: Arc<dyn Bytes>) -> Self {
        let range = 0..owner.bytes().len();
        Self { owner, range }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // `of` has checked the range, and the owner always returns the same bytes.
        let bytes = self.owner.bytes().get(self.range.clone());
        debug_assert!(bytes.is_some(), "memory changed its length");
        bytes.unwrap_or_default()
    }

    /// As a memoryview.
    pub(crate) fn view(self, py: Python<'_>) -> PyResult<Bound<'_, PyMemoryView>> {
        PyMemoryView::from(Bound::new(py, self)?.as_any())
    }
}

#[pymethods]
impl Memory {
    fn __len__(&self) -> usize {
        self.bytes().len()
    }

    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = slf.get().bytes();
        let data = bytes.as_ptr().cast_mut().cast();
        let len = bytes.len().cast_signed(); // no slice is longer than `isize::MAX`
        // SAFETY: Python passes a `view` to be filled. The bytes do not move while `slf` lives (see `Bytes`: a frozen
        // class never swaps its owner), and the view holds a reference to `slf`, which this call takes. The view is
        // read-only (the argument 1), so nobody writes through the pointer: a request for a writable one fails.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data, len, 1, flags) };
        if status == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
