//! Pointers from C, read and written: the only file with `unsafe`.
//!
//! Each type here is a pointer that a C program passes. The header states what it must point to; that is the duty of
//! the program, and every `SAFETY` comment below refers to it. NULL is checked here.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

use grainstore_format::to_usize;

use crate::status::Failure;

/// `const char *`: text that ends with a zero byte, or NULL.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// Its bytes; `None` for NULL.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: not NULL; the header requires a zero byte at the end, and that nothing changes the text during the
        // call. The result does not outlive the call: it borrows an argument of it.
        let text = unsafe { CStr::from_ptr(self.0) };
        Some(text.to_bytes())
    }

    /// The text; `None` for NULL.
    pub(crate) fn get(&self, name: &str) -> Result<Option<&str>, Failure> {
        self.bytes().map(str::from_utf8).transpose().map_err(|_| Failure::argument(format!("{name} is not UTF-8")))
    }

    /// The text, where NULL is an error.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, Failure> {
        self.get(name)?.ok_or_else(|| Failure::null(name))
    }
}

/// `const T *` and a count, which is passed separately.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Items<T>(*const T);

/// `const uint64_t *`: ordinals.
pub type Numbers = Items<u64>;

impl<T> Items<T> {
    /// The `count` items; NULL is allowed where there are none.
    pub(crate) fn slice(&self, count: usize, name: &str) -> Result<&[T], Failure> {
        if count == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(Failure::null(name));
        }
        if !self.0.is_aligned() || count > isize::MAX.cast_unsigned() / size_of::<T>().max(1) {
            return Err(Failure::argument(format!("{name}: {count} items cannot be there")));
        }
        // SAFETY: not NULL, aligned, and not longer than an address space; the header requires `count` items that
        // nothing changes during the call. The result borrows an argument of the call.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }
}

/// `T *`: where one result goes.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Stores `first`, what the caller finds if the call fails, and returns where the result goes.
    pub(crate) fn prepared(self, first: T, name: &str) -> Result<Place<T>, Failure> {
        if self.0.is_null() {
            return Err(Failure::null(name));
        }
        let place = Place(self.0);
        place.put(first);
        Ok(place)
    }
}

/// Where one result goes: not NULL.
#[derive(Debug)]
pub struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Stores a result. What was there is not dropped: it may be no value at all.
    pub(crate) fn put(&self, value: T) {
        // SAFETY: not NULL (see `Out::prepared`, the only place that makes one); the header requires a pointer to a
        // variable of the type, and variables of C are aligned. Nothing is read from it.
        unsafe { self.0.write(value) };
    }
}

/// `T *` with a capacity, which is passed separately: where several results go. NULL has room for none.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Buffer<T>(*mut T);

impl<T: Copy> Buffer<T> {
    /// Whether it is NULL.
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Stores items from its start on. There is room for all of them, or nothing is stored.
    pub(crate) fn put(&self, items: &[T], capacity: usize) -> Result<(), Failure> {
        if items.len() > capacity || (self.0.is_null() && !items.is_empty()) {
            return Err(Failure::short_buffer(items.len(), if self.0.is_null() { 0 } else { capacity }));
        }
        if !items.is_empty() {
            // SAFETY: not NULL; the header requires room for `capacity` items that overlap nothing of the library, and
            // there are not more items than that.
            unsafe { self.0.copy_from_nonoverlapping(items.as_ptr(), items.len()) };
        }
        Ok(())
    }
}

/// What a structure of options must be: numbers and pointers, for each of which all bits zero are the default.
///
/// # Safety
/// All bits zero must be a value of the type, and so must be any bytes of a C program's structure.
unsafe trait Plain: Sized {}

// SAFETY: integers, and `Text`, which is a raw pointer.
unsafe impl Plain for crate::dataset::OpenOptions {}
// SAFETY: as above.
unsafe impl Plain for crate::epoch::EpochOptions {}

/// `const T *` to a structure of options, which begins with its own size, or NULL.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Options<T>(*const T);

#[expect(private_bounds, reason = "only the structures of this library")]
impl<T: Plain> Options<T> {
    /// The options; defaults for NULL, and for members that the program does not know. Members that this library does
    /// not know must be zero.
    pub(crate) fn get(&self, name: &str) -> Result<T, Failure> {
        let mut options = MaybeUninit::<T>::zeroed();
        if self.0.is_null() {
            // SAFETY: `Plain`: zeros are a value.
            return Ok(unsafe { options.assume_init() });
        }
        // SAFETY: not NULL; the header requires that the structure begins with its size.
        let size = to_usize(unsafe { self.0.cast::<u64>().read_unaligned() });
        if size < size_of::<u64>() || size > 4096 {
            let message = format!("{name}: size is {size}, expected sizeof of the structure, {}", size_of::<T>());
            return Err(Failure::argument(message));
        }
        // SAFETY: the header requires that `size` is the size of the program's structure.
        let given = unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), size) };
        if given.iter().skip(size_of::<T>()).any(|&byte| byte != 0) {
            let message = format!("{name} has members that this version of the library does not know");
            return Err(Failure::argument(message));
        }
        let known = size.min(size_of::<T>());
        // SAFETY: both have `known` bytes, and the destination is a variable of this function.
        unsafe { options.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(given.as_ptr(), known) };
        // SAFETY: `Plain`: all bytes are initialised, and any are a value.
        Ok(unsafe { options.assume_init() })
    }
}

/// `grainstore_bytes`: bytes that belong to a handle; `data` is NULL where there are none.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    /// The first byte.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
}

impl Bytes {
    /// No bytes: the sample lacks the field.
    pub(crate) const NONE: Self = Self { data: std::ptr::null(), len: 0 };

    /// The bytes, or `NONE`.
    pub(crate) fn of(bytes: Option<&[u8]>) -> Self {
        bytes.map_or(Self::NONE, |bytes| Self { data: bytes.as_ptr(), len: bytes.len() })
    }
}
