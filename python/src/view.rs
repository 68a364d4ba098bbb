//! Memory that Python reads without a copy.

use std::ffi::c_int;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{ptr, slice, thread};

use grainstore_reader::engine::provide_pages;
use grainstore_store::copy_large;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView};

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

/// A `bytes` object that nobody else has yet, and whose bytes are still to be written.
struct NewBytes<'py> {
    object: Bound<'py, PyBytes>,
    len: usize,
}

impl<'py> NewBytes<'py> {
    fn of_len(py: Python<'py>, len: usize) -> PyResult<Self> {
        let py_len = isize::try_from(len)?;
        // SAFETY: without bytes to copy, Python makes an object with room for `len` of them, or returns null with an
        // error.
        let made = unsafe { ffi::PyBytes_FromStringAndSize(ptr::null(), py_len) };
        // SAFETY: a new reference, or null with an error.
        let object = unsafe { Bound::from_owned_ptr_or_err(py, made)? };
        Ok(Self { object: object.cast_into::<PyBytes>()?, len })
    }

    /// Its bytes.
    fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the object is a `bytes`.
        let bytes = unsafe { ffi::PyBytes_AsString(self.object.as_ptr()) };
        // SAFETY: these are its `len` bytes, which stay where they are while it lives. Nobody else has the object yet, so
        // they may be written; only an empty one is shared, and has none.
        unsafe { slice::from_raw_parts_mut(bytes.cast(), self.len) }
    }

    /// The object.
    ///
    /// # Safety
    /// All bytes of its [`room`](Self::room) have been written.
    unsafe fn written(self) -> Bound<'py, PyBytes> {
        self.object
    }
}

/// `bytes` of a length that `fill` writes in place; `None` if it does not. It returns the memory that it was given, all
/// of it written.
pub(crate) fn bytes_filled<'py>(
    py: Python<'py>,
    len: usize,
    fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Option<&mut [u8]>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let mut made = NewBytes::of_len(py, len)?;
    let room = made.room();
    let start = room.as_ptr();
    match fill(room) {
        Some(filled) if ptr::eq(filled.as_ptr(), start.cast()) && filled.len() == len => {
            // SAFETY: `fill` returned the whole room as bytes that are written.
            Ok(Some(unsafe { made.written() }))
        }
        _ => Ok(None),
    }
}

/// Bytes from which on copies are worth releasing Python's lock.
const UNLOCKED_LEN_MIN: usize = 64 << 10;
/// Bytes for which another thread is worth starting: it takes as long to start as to copy a hundredth of them into new
/// memory.
const THREAD_LEN: usize = 8 << 20;
/// The most threads that copy at once: they share the way to memory.
const THREADS_MAX: usize = 4;

/// Copies of `parts` as `bytes`, and `None` where there is none. Many bytes are copied without Python's lock.
pub(crate) fn bytes_of_each<'py>(py: Python<'py>, parts: &[Option<&[u8]>]) -> PyResult<Bound<'py, PyList>> {
    let made: PyResult<Vec<_>> =
        parts.iter().map(|part| part.map(|part| NewBytes::of_len(py, part.len())).transpose()).collect();
    let mut made = made?;
    let rooms = made.iter_mut().flatten().map(NewBytes::room);
    let copies: Vec<PartCopy<'_>> =
        rooms.zip(parts.iter().flatten()).map(|(room, part)| PartCopy { room, part }).collect();
    let total_len: usize = copies.iter().map(|copy| copy.part.len()).sum();
    if total_len < UNLOCKED_LEN_MIN {
        copies.into_iter().for_each(PartCopy::make);
    } else {
        py.detach(|| PartCopy::make_all(copies, threads_for(total_len)));
    }
    let written = |made: Option<NewBytes<'py>>| {
        // SAFETY: each room got a copy as long as it: it was made for that part.
        made.map(|made| unsafe { made.written() })
    };
    PyList::new(py, made.into_iter().map(written))
}

/// The number of threads for a copy of `total_len` bytes: as many as the process may use and the copy is worth.
fn threads_for(total_len: usize) -> usize {
    // To ask takes as long as to copy 100 KB.
    static CORES: OnceLock<usize> = OnceLock::new();
    match total_len / THREAD_LEN {
        0 | 1 => 1,
        wanted => {
            let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
            wanted.min(*CORES.get_or_init(cores)).min(THREADS_MAX)
        }
    }
}

/// A copy to be made, as long as the room for it.
struct PartCopy<'a> {
    room: &'a mut [MaybeUninit<u8>],
    part: &'a [u8],
}

impl PartCopy<'_> {
    fn make(self) {
        assert_eq!(self.room.len(), self.part.len(), "the room was made for this part");
        provide_pages(self.room);
        copy_large(self.part, self.room);
    }

    fn make_all(copies: Vec<Self>, threads: usize) {
        if threads == 1 {
            return copies.into_iter().for_each(Self::make);
        }
        let copies = Mutex::new(copies.into_iter());
        let next = || copies.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(copy) = next() {
                copy.make();
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // If the system has no thread to give, the others do its share.
                let _ = thread::Builder::new().name("grain-bytes".into()).spawn_scoped(scope, work);
            }
            work();
        });
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
