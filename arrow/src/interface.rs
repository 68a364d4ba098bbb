//! The structures of Arrow's C data and stream interfaces: made from `Field` and `Array`, read and released by a
//! consumer in any language, in any thread. The only file with `unsafe`.
//!
//! A structure that was not handed on is released when it is dropped. A consumer takes one over by copying its bytes and
//! setting `release` of the original to NULL.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use crate::buffer::Buffer;

/// `ARROW_FLAG_NULLABLE`
const NULLABLE: i64 = 2;
/// `errno` of an error of ours: the system's number for a failed read or write.
const EIO: c_int = 5;

/// The type of a column.
#[derive(Debug, Clone, Default)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// As the interface spells types.
    pub(crate) format: String,
    pub(crate) is_nullable: bool,
    pub(crate) children: Vec<Field>,
    /// The type of the values, where this one is of indices to them.
    pub(crate) dictionary: Option<Box<Field>>,
}

/// The values of a column.
#[derive(Debug, Clone, Default)]
pub(crate) struct Array {
    pub(crate) len: i64,
    /// Values before the first, in every buffer.
    pub(crate) offset: i64,
    /// The first is the validity: `None` where every value is present.
    pub(crate) buffers: Vec<Option<Buffer>>,
    pub(crate) children: Vec<Array>,
    pub(crate) dictionary: Option<Box<Array>>,
}

/// `struct ArrowSchema`
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// What an `ArrowSchema` points to.
struct SchemaParts {
    _format: CString,
    _name: CString,
    _children: Children<ArrowSchema>,
    _dictionary: Option<Owned<ArrowSchema>>,
}

/// `struct ArrowArray`
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// What an `ArrowArray` points to.
struct ArrayParts {
    _starts: Vec<*const c_void>,
    _owners: Vec<Arc<dyn Any + Send + Sync>>,
    _children: Children<ArrowArray>,
    _dictionary: Option<Owned<ArrowArray>>,
}

// SAFETY: the pointers are to memory of their own parts, which any thread may read and free: owners are `Send + Sync`.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above; nothing changes it except the consumer that owns it.
unsafe impl Send for ArrowArray {}

/// A structure in a box whose address a parent structure holds.
struct Owned<T>(*mut T);

impl<T> Owned<T> {
    fn new(value: T) -> Self {
        Self(Box::into_raw(Box::new(value)))
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `new`, the only place that makes one, and dropped once. A consumer that
        // took the child over has set its `release` to NULL, so that dropping it does nothing.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// The children of a structure, and the list of their addresses.
struct Children<T> {
    _owned: Vec<Owned<T>>,
    addresses: Vec<*mut T>,
}

impl<T> Children<T> {
    fn new(values: impl Iterator<Item = T>) -> Self {
        let owned: Vec<Owned<T>> = values.map(Owned::new).collect();
        let addresses = owned.iter().map(|one| one.0).collect();
        Self { _owned: owned, addresses }
    }
}

/// Text for C; a zero byte, which no name of a schema has, would end it.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{FFFD}")).unwrap_or_default()
}

/// The number of children or buffers: few.
fn count(len: usize) -> i64 {
    len.cast_signed() as i64
}

impl ArrowSchema {
    pub(crate) fn new(field: Field) -> Self {
        let (format, name) = (c_text(&field.format), c_text(&field.name));
        let mut children = Children::new(field.children.into_iter().map(Self::new));
        let dictionary = field.dictionary.map(|field| Owned::new(Self::new(*field)));
        let (format_at, name_at) = (format.as_ptr(), name.as_ptr());
        let (n_children, children_at) = (count(children.addresses.len()), children.addresses.as_mut_ptr());
        let dictionary_at = dictionary.as_ref().map_or(ptr::null_mut(), |one| one.0);
        // Moving them into their box moves no text and no list of addresses.
        let parts = SchemaParts { _format: format, _name: name, _children: children, _dictionary: dictionary };
        Self {
            format: format_at,
            name: name_at,
            metadata: ptr::null(),
            flags: if field.is_nullable { NULLABLE } else { 0 },
            n_children,
            children: children_at,
            dictionary: dictionary_at,
            release: Some(release_schema),
            private_data: Box::into_raw(Box::new(parts)).cast(),
        }
    }
}

/// `ArrowSchema.release`
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the interface: a consumer passes the structure that has this function, once.
    let schema = unsafe { &mut *schema };
    schema.release = None;
    // SAFETY: `new` made it of a box of this type; `release` is NULL from now on, so nobody takes it again.
    let parts = unsafe { Box::from_raw(schema.private_data.cast::<SchemaParts>()) };
    dropped(parts);
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: ours, or that of the consumer's making who moved it here; not released yet.
            unsafe { release(self) };
        }
    }
}

impl ArrowArray {
    pub(crate) fn new(array: Array) -> Self {
        let mut starts: Vec<*const c_void> = Vec::with_capacity(array.buffers.len());
        let mut owners = Vec::with_capacity(array.buffers.len());
        let null_count = if array.buffers.first().is_some_and(Option::is_some) { -1 } else { 0 };
        for buffer in array.buffers {
            starts.push(buffer.as_ref().map_or(ptr::null(), |buffer| buffer.start().cast()));
            owners.extend(buffer.map(Buffer::owner));
        }
        let mut children = Children::new(array.children.into_iter().map(Self::new));
        let dictionary = array.dictionary.map(|array| Owned::new(Self::new(*array)));
        let (n_buffers, buffers_at) = (count(starts.len()), starts.as_mut_ptr());
        let (n_children, children_at) = (count(children.addresses.len()), children.addresses.as_mut_ptr());
        let dictionary_at = dictionary.as_ref().map_or(ptr::null_mut(), |one| one.0);
        let parts = ArrayParts { _starts: starts, _owners: owners, _children: children, _dictionary: dictionary };
        Self {
            length: array.len,
            null_count, // -1: not counted
            offset: array.offset,
            n_buffers,
            n_children,
            buffers: buffers_at,
            children: children_at,
            dictionary: dictionary_at,
            release: Some(release_array),
            private_data: Box::into_raw(Box::new(parts)).cast(),
        }
    }

    /// What a stream gives at its end: an array that is released already.
    fn end() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

/// `ArrowArray.release`
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the interface: a consumer passes the structure that has this function, once.
    let array = unsafe { &mut *array };
    array.release = None;
    // SAFETY: `new` made it of a box of this type; `release` is NULL from now on, so nobody takes it again.
    let parts = unsafe { Box::from_raw(array.private_data.cast::<ArrayParts>()) };
    dropped(parts);
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: ours, or that of the consumer's making who moved it here; not released yet.
            unsafe { release(self) };
        }
    }
}

/// Drops what a structure owned. A panic must not reach a consumer in another language.
fn dropped<T>(parts: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(parts))) {
        std::mem::forget(panic);
    }
}

/// What a stream reads from.
pub(crate) trait Batches: Send {
    /// The type of its batches: a structure of columns.
    fn field(&mut self) -> Result<Field, String>;
    /// The next batch; `None` after the last.
    fn next(&mut self) -> Result<Option<Array>, String>;
}

/// `struct ArrowArrayStream`
#[repr(C)]
#[derive(Debug)]
pub struct ArrowStream {
    get_schema: unsafe extern "C" fn(*mut ArrowStream, *mut ArrowSchema) -> c_int,
    get_next: unsafe extern "C" fn(*mut ArrowStream, *mut ArrowArray) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut ArrowStream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut ArrowStream)>,
    private_data: *mut c_void,
}

/// What an `ArrowStream` points to.
struct StreamParts {
    batches: Box<dyn Batches>,
    error: Option<CString>,
}

// SAFETY: the pointer is to parts of its own, which are `Send`; one thread at a time uses a stream.
unsafe impl Send for ArrowStream {}

impl ArrowStream {
    pub(crate) fn new(batches: Box<dyn Batches>) -> Self {
        let parts = StreamParts { batches, error: None };
        Self {
            get_schema,
            get_next,
            get_last_error,
            release: Some(release_stream),
            private_data: Box::into_raw(Box::new(parts)).cast(),
        }
    }
}

impl Drop for ArrowStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: ours, or that of the consumer's making who moved it here; not released yet.
            unsafe { release(self) };
        }
    }
}

/// Does the work of a callback, stores its result, and keeps its error for `get_last_error`.
///
/// # Safety
/// `stream` is one of ours that is not released, and nothing else uses it meanwhile; `out` is memory for a `T`.
unsafe fn answer<T>(
    stream: *mut ArrowStream,
    out: *mut T,
    work: impl FnOnce(&mut dyn Batches) -> Result<T, String>,
) -> c_int {
    // SAFETY: the caller's duty.
    let place = unsafe { (*stream).private_data };
    // SAFETY: `ArrowStream::new` made it of a box of this type, and nothing else uses it meanwhile.
    let parts = unsafe { &mut *place.cast::<StreamParts>() };
    let done = catch_unwind(AssertUnwindSafe(|| work(&mut *parts.batches)));
    let error = match done {
        Ok(Ok(value)) => {
            // SAFETY: the caller's duty. What was there is not dropped: it is no value.
            unsafe { out.write(value) };
            parts.error = None;
            return 0;
        }
        Ok(Err(error)) => error,
        Err(panic) => {
            std::mem::forget(panic);
            "internal error: a panic; please report it".to_owned()
        }
    };
    parts.error = Some(c_text(&error));
    EIO
}

/// `ArrowArrayStream.get_schema`
unsafe extern "C" fn get_schema(stream: *mut ArrowStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the interface: a consumer passes its stream, and memory for the result.
    unsafe { answer(stream, out, |batches| batches.field().map(ArrowSchema::new)) }
}

/// `ArrowArrayStream.get_next`
unsafe extern "C" fn get_next(stream: *mut ArrowStream, out: *mut ArrowArray) -> c_int {
    let next = |batches: &mut dyn Batches| Ok(batches.next()?.map_or_else(ArrowArray::end, ArrowArray::new));
    // SAFETY: as in `get_schema`.
    unsafe { answer(stream, out, next) }
}

/// `ArrowArrayStream.get_last_error`
unsafe extern "C" fn get_last_error(stream: *mut ArrowStream) -> *const c_char {
    // SAFETY: the interface: a consumer passes its stream.
    let place = unsafe { (*stream).private_data };
    // SAFETY: `ArrowStream::new` made it of a box of this type, and nothing changes it meanwhile.
    let parts = unsafe { &*place.cast::<StreamParts>() };
    parts.error.as_deref().map_or(ptr::null(), CStr::as_ptr)
}

/// `ArrowArrayStream.release`
unsafe extern "C" fn release_stream(stream: *mut ArrowStream) {
    // SAFETY: the interface: a consumer passes the structure that has this function, once.
    let stream = unsafe { &mut *stream };
    stream.release = None;
    // SAFETY: `new` made it of a box of this type; `release` is NULL from now on, so nobody takes it again.
    let parts = unsafe { Box::from_raw(stream.private_data.cast::<StreamParts>()) };
    dropped(parts);
}
