//! What a call returns: a status, and for each thread the text of its last error.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use grainstore_format::{FormatError, Remedy, escape_controls};
use grainstore_reader::plan::PlanError;
use grainstore_reader::{ExpressionError, ReadError, SelectError, StateError, engine};
use grainstore_store::StoreError;

use crate::hint::hint;

/// `grainstore_status`.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub i32);

impl Status {
    /// `GRAINSTORE_OK`
    pub const OK: Self = Self(0);
    /// `GRAINSTORE_END`
    pub const END: Self = Self(1);
    /// `GRAINSTORE_INVALID_ARGUMENT`
    pub const INVALID_ARGUMENT: Self = Self(2);
    /// `GRAINSTORE_NOT_FOUND`
    pub const NOT_FOUND: Self = Self(3);
    /// `GRAINSTORE_NO_SAMPLE`
    pub const NO_SAMPLE: Self = Self(4);
    /// `GRAINSTORE_NO_NAME`
    pub const NO_NAME: Self = Self(5);
    /// `GRAINSTORE_NO_VALUE`
    pub const NO_VALUE: Self = Self(6);
    /// `GRAINSTORE_NOT_A_DATASET`
    pub const NOT_A_DATASET: Self = Self(7);
    /// `GRAINSTORE_TOO_NEW`
    pub const TOO_NEW: Self = Self(8);
    /// `GRAINSTORE_DAMAGED`
    pub const DAMAGED: Self = Self(9);
    /// `GRAINSTORE_READ_FAILED`
    pub const READ_FAILED: Self = Self(10);
    /// `GRAINSTORE_INVALID_STATE`
    pub const INVALID_STATE: Self = Self(11);
    /// `GRAINSTORE_NO_MEMORY`
    pub const NO_MEMORY: Self = Self(12);
    /// `GRAINSTORE_SHORT_BUFFER`
    pub const SHORT_BUFFER: Self = Self(13);
    /// `GRAINSTORE_FORKED`
    pub const FORKED: Self = Self(14);
    /// `GRAINSTORE_INTERNAL`
    pub const INTERNAL: Self = Self(15);
    /// `GRAINSTORE_CHANGED`
    pub const CHANGED: Self = Self(16);
}

/// An error: its status and its text.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(Status::INVALID_ARGUMENT, text)
    }

    pub(crate) fn null(name: &str) -> Self {
        Self::argument(format!("{name} is NULL"))
    }

    pub(crate) fn short_buffer(len: usize, capacity: usize) -> Self {
        Self::new(Status::SHORT_BUFFER, format!("the result has {len} bytes, and there is room for {capacity}"))
    }

    /// An error of a library, with its causes and what helps.
    fn of_error(status: Status, error: &dyn Error, remedy: Option<Remedy>) -> Self {
        let mut text = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            let shown = cause.to_string();
            if !text.ends_with(&shown) {
                text = format!("{text}: {shown}");
            }
            next = cause.source();
        }
        if let Some(hint) = remedy.as_ref().and_then(hint) {
            text = format!("{text}; {hint}");
        }
        Self::new(status, text)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let status = status_of_store(&error);
        Self::of_error(status, &error, error.remedy())
    }
}

fn status_of_store(error: &StoreError) -> Status {
    match error {
        StoreError::NotFound { .. } => Status::NOT_FOUND,
        StoreError::Format { source, .. } if source.is_other_version() => Status::TOO_NEW,
        StoreError::Format { source: FormatError::NotGrainstore { .. }, .. }
        | StoreError::NotADataset { .. }
        | StoreError::Unfinished { .. } => Status::NOT_A_DATASET,
        StoreError::Format { source: FormatError::NoMemory { .. }, .. } | StoreError::NoMemory { .. } => {
            Status::NO_MEMORY
        }
        StoreError::Format { .. } | StoreError::Mismatch { .. } | StoreError::Sample { .. } => Status::DAMAGED,
        StoreError::Changed { .. } => Status::CHANGED,
        StoreError::NoSuchOrdinal { .. } => Status::NO_SAMPLE,
        StoreError::NoSuchAttribute { .. } => Status::NO_NAME,
        StoreError::Bug { .. } => Status::INTERNAL,
        StoreError::Io { .. } | StoreError::Threads(_) => Status::READ_FAILED,
        _ => Status::INVALID_ARGUMENT,
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let status = match &error {
            ReadError::Store(error) => status_of_store(error),
            ReadError::Engine(engine::EngineError::Forked { .. }) | ReadError::Forked => Status::FORKED,
            ReadError::Unreadable { .. }
            | ReadError::CannotOpen { .. }
            | ReadError::Stalled { .. }
            | ReadError::Engine(_)
            | ReadError::Thread { .. } => Status::READ_FAILED,
            ReadError::State(_) | ReadError::Plan(PlanError::PositionOutOfRange { .. }) => Status::INVALID_STATE,
            ReadError::NoMemory { .. } | ReadError::Plan(PlanError::NoMemory(_)) => Status::NO_MEMORY,
            ReadError::NoSuchField { .. } => Status::NO_NAME,
            ReadError::Bug { .. } => Status::INTERNAL,
            _ => Status::INVALID_ARGUMENT,
        };
        Self::of_error(status, &error, error.remedy())
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::of_error(Status::INVALID_STATE, &error, error.remedy())
    }
}

impl From<ExpressionError> for Failure {
    fn from(error: ExpressionError) -> Self {
        Self::of_error(Status::INVALID_ARGUMENT, &error, None)
    }
}

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Store(error) => error.into(),
            error => Self::of_error(Status::INVALID_ARGUMENT, &error, error.remedy()),
        }
    }
}

thread_local! {
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Does the work of a call. An error becomes a status and the thread's text; so does a panic.
pub(crate) fn guarded(work: impl FnOnce() -> Result<Status, Failure>) -> Status {
    // What a panic leaves half done: handles are never changed except under a lock that reports it.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => {
            set_text(&failure.text);
            failure.status
        }
        Err(panic) => {
            set_text(&format!("internal error: {}; please report it", message_of(&*panic)));
            // Dropping it could run code that panics again.
            std::mem::forget(panic);
            Status::INTERNAL
        }
    }
}

/// Does work that cannot fail; `otherwise` is returned where it panics.
pub(crate) fn guarded_value<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value,
        Err(panic) => {
            set_text(&format!("internal error: {}; please report it", message_of(&*panic)));
            std::mem::forget(panic);
            otherwise
        }
    }
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}

fn set_text(text: &str) {
    // Control characters are escaped, so there is no zero byte.
    let text = CString::new(escape_controls(text).as_bytes()).unwrap_or_default();
    // A thread that is ending has no text any more.
    let _ = TEXT.try_with(|place| place.replace(text));
}

/// `grainstore_error_text`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_error_text() -> *const c_char {
    TEXT.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// `grainstore_version`
#[unsafe(no_mangle)]
pub extern "C" fn grainstore_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        TEXT.with(|text| text.borrow().to_str().unwrap().to_owned())
    }

    #[test]
    fn a_panic_is_a_status_with_a_text() {
        let number = std::hint::black_box(7);
        assert_eq!(guarded(|| panic!("broken {number}")), Status::INTERNAL);
        assert_eq!(text(), "internal error: broken 7; please report it");
        assert_eq!(guarded_value(9, || panic!("constant")), 9);
        assert_eq!(text(), "internal error: constant; please report it");
    }

    #[test]
    fn a_text_belongs_to_its_thread_and_has_no_zero_byte() {
        assert_eq!(guarded(|| Err(Failure::argument("one\0two"))), Status::INVALID_ARGUMENT);
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(text(), ""));
        });
        assert_eq!(text(), "one\\u{0}two");
    }
}
