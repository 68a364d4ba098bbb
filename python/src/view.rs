//! Memory that Python reads without a copy.

use std::ffi::c_int;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Range;
use std::sync::Arc;
use std::{ptr, slice};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

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

/// `bytes` of a length that `fill` writes in place; `None` if it does not. It returns the memory that it was given, all
/// of it written.
pub(crate) fn bytes_filled<'py>(
    py: Python<'py>,
    len: usize,
    fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Option<&mut [u8]>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py_len = isize::try_from(len)?;
    // SAFETY: without bytes to copy, Python makes an object with room for `len` of them, or returns null with an error.
    let made = unsafe { ffi::PyBytes_FromStringAndSize(ptr::null(), py_len) };
    // SAFETY: a new reference, or null with an error.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, made)? };
    // SAFETY: the object is a `bytes`.
    let bytes = unsafe { ffi::PyBytes_AsString(object.as_ptr()) };
    // SAFETY: these are its `len` bytes. Nobody else has the object yet, so they may be written.
    let room = unsafe { slice::from_raw_parts_mut(bytes.cast(), len) };
    let start = room.as_ptr();
    match fill(room) {
        Some(filled) if ptr::eq(filled.as_ptr(), start.cast()) && filled.len() == len => {
            Ok(Some(object.cast_into::<PyBytes>()?))
        }
        _ => Ok(None),
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

/// Bytes that NumPy reads and writes in place. Nothing in Rust reads them any more.
#[pyclass(frozen, module = "grainstore._core")]
pub(crate) struct OwnMemory {
    start: *mut u8,
    len: usize,
    capacity: usize,
}

// SAFETY: the memory belongs to this object alone, which never reads or writes it. Who does so through its buffer has
// Python's rules for that.
unsafe impl Send for OwnMemory {}
// SAFETY: as above.
unsafe impl Sync for OwnMemory {}

impl OwnMemory {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let mut bytes = ManuallyDrop::new(bytes);
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), capacity: bytes.capacity() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        // SAFETY: `of` took these three from a vector that was not dropped. No buffer is left: each holds a reference.
        drop(unsafe { Vec::from_raw_parts(self.start, self.len, self.capacity) });
    }
}

#[pymethods]
impl OwnMemory {
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let memory = slf.get();
        let len = memory.len.cast_signed(); // no vector is longer than `isize::MAX`
        // SAFETY: Python passes a `view` to be filled. The bytes are there while `slf` lives, to which the view holds a
        // reference, which this call takes. They may be written (the argument 0): nothing in Rust refers to them.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), memory.start.cast(), len, 0, flags) };
        if status == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
