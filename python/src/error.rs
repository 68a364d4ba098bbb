//! Converts the libraries' errors to the package's exceptions, which are classes of `grainstore._errors`.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::path::Path;

use grainstore_converters::ConvertError;
use grainstore_export::ExportError;
use grainstore_format::memory::NoMemory;
use grainstore_format::{FormatError, Remedy};
use grainstore_reader::plan::PlanError;
use grainstore_reader::{ExpressionError, ReadError, SelectError, StateError, SubsetError, engine};
use grainstore_sources::ListingError;
use grainstore_sources::SourceError;
use grainstore_store::StoreError;
use grainstore_writer::WriteError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::hint::with_hint;

/// An exception to be raised; created without holding Python's lock.
#[derive(Debug)]
pub(crate) struct Raised {
    /// The name of the class in `grainstore._errors`.
    kind: &'static str,
    message: String,
    place: Box<ErrorLocation>,
}

/// Where the error occurred, as far as that is known.
#[derive(Debug, Default)]
struct ErrorLocation {
    path: Option<OsString>,
    segment: Option<OsString>,
    ordinal: Option<u64>,
    key: Option<Vec<u8>>,
    offset: Option<u64>,
    /// The errno of the system.
    errno: Option<i32>,
}

impl Raised {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: Box::default() }
    }

    /// An invalid argument.
    pub(crate) fn option(message: impl Into<String>) -> Self {
        Self::new("InvalidOption", message)
    }

    /// A state that this module cannot reach: a failed assertion where assertions are on, else an exception.
    #[cold]
    pub(crate) fn bug(what: &'static str) -> Self {
        debug_assert!(false, "{what}");
        Self::new("Error", format!("internal error: {what}; please report it"))
    }

    pub(crate) fn no_such_ordinal(index: impl Display, len: u64) -> Self {
        Self::new("NoSuchOrdinal", format!("no sample {index}: there are {len}, numbered from 0"))
    }

    pub(crate) fn no_such_key(key: &[u8]) -> Self {
        let message = format!("no sample has the key \"{}\"", grainstore_format::escape_bytes(key));
        Self::new("NoSuchKey", message).for_sample(None, Some(key.to_vec()))
    }

    pub(crate) fn closed(what: &str) -> Self {
        Self::new("Closed", format!("the {what} was closed"))
    }

    /// The same error, with a hint at what the caller may have meant.
    pub(crate) fn hinting(mut self, hint: &str) -> Self {
        self.message = format!("{}; {hint}", self.message);
        self
    }

    /// An error of a library, with its cause and a hint for the caller.
    fn of_error(kind: &'static str, error: &(dyn Error + 'static), remedy: Option<Remedy>) -> Self {
        let mut raised = Self::new(kind, grainstore_format::escape_controls(&with_hint(chain(error), remedy.as_ref())));
        raised.place.errno = errno(error);
        raised
    }

    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.place.path = Some(path.into());
        self
    }

    pub(crate) fn for_sample(mut self, ordinal: Option<u64>, key: Option<Vec<u8>>) -> Self {
        (self.place.ordinal, self.place.key) = (ordinal, key);
        self
    }

    fn in_segment(mut self, segment: &Path, offset: Option<u64>) -> Self {
        self.place.segment = Some(segment.into());
        self.place.offset = offset;
        self
    }

    fn raised(self, py: Python<'_>) -> PyResult<PyErr> {
        let class = py.import("grainstore._errors")?.getattr(self.kind)?;
        let facts = PyDict::new(py);
        facts.set_item("path", self.place.path)?;
        facts.set_item("segment", self.place.segment)?;
        facts.set_item("ordinal", self.place.ordinal)?;
        facts.set_item("key", self.place.key.map(|key| PyBytes::new(py, &key)))?;
        facts.set_item("offset", self.place.offset)?;
        facts.set_item("errno", self.place.errno)?;
        Ok(PyErr::from_value(class.call((self.message,), Some(&facts))?))
    }
}

impl From<Raised> for PyErr {
    fn from(raised: Raised) -> Self {
        Python::attach(|py| raised.raised(py).unwrap_or_else(|error| error))
    }
}

/// The number of the system error that caused it.
fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(number) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Some(number);
        }
        next = error.source();
    }
    None
}

/// The error and what caused it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let shown = cause.to_string();
        if !text.ends_with(&shown) {
            text = format!("{text}: {shown}");
        }
        next = cause.source();
    }
    text
}

impl From<StoreError> for Raised {
    fn from(error: StoreError) -> Self {
        let of = |kind| Self::of_error(kind, &error, error.remedy());
        match &error {
            StoreError::NotFound { path } => of("DatasetNotFound").at(path),
            StoreError::Url(url) => of("InvalidOption").at(&url.path),
            StoreError::Io { path, .. } => of("ReadFailed").at(path),
            StoreError::Format { path, source } => of(kind_of_format(source)).at(path),
            StoreError::NotADataset { path, .. } | StoreError::Unfinished { path, .. } => of("NotADataset").at(path),
            StoreError::Mismatch { path, .. } => of("Damaged").at(path),
            StoreError::Changed { path, .. } => of("DatasetChanged").at(path),
            StoreError::Outside { path, .. } => of("InvalidOption").at(path),
            StoreError::NoSuchOrdinal { ordinal, .. } => of("NoSuchOrdinal").for_sample(Some(*ordinal), None),
            StoreError::NoSuchAttribute { .. } => of("NoSuchName"),
            StoreError::NoSuchGeneration { path, .. } => of("InvalidOption").at(path),
            StoreError::Unlike { second, .. } => of("InvalidOption").at(second),
            StoreError::NoMembers => of("InvalidOption"),
            StoreError::Sample { path, ordinal, key, offset, .. } => {
                of("DamagedSample").for_sample(Some(*ordinal), key.clone()).in_segment(path, Some(*offset)).at(path)
            }
            StoreError::NoMemory { path, .. } => of("OutOfMemory").at(path),
            _ => of("Error"),
        }
    }
}

fn kind_of_format(error: &FormatError) -> &'static str {
    match error {
        error if error.is_other_version() => "TooNew",
        FormatError::NotGrainstore { .. } => "NotADataset",
        FormatError::NoMemory { .. } => "OutOfMemory",
        FormatError::UnheldMember { .. } => "Error",
        _ => "Damaged",
    }
}

impl From<ReadError> for Raised {
    fn from(error: ReadError) -> Self {
        let of = |kind| Self::of_error(kind, &error, error.remedy());
        match &error {
            ReadError::Unreadable { ordinal, key, source } => {
                let raised = of("UnreadableSample").for_sample(Some(*ordinal), key.clone());
                raised.in_segment(source.path(), source.offset()).at(source.path())
            }
            ReadError::CannotOpen { source } => of("ReadFailed").at(source.path()),
            ReadError::Engine(engine::EngineError::Forked { .. }) | ReadError::Forked => of("Forked"),
            ReadError::Engine(_) | ReadError::Thread { .. } => of("ReadFailed"),
            ReadError::Stalled { path, .. } => of("ReadFailed").at(path),
            ReadError::State(_) | ReadError::Plan(PlanError::PositionOutOfRange { .. }) => of("InvalidState"),
            ReadError::NoMemory { .. }
            | ReadError::Plan(PlanError::NoMemory(_) | PlanError::Subset(SubsetError::NoMemory(_))) => {
                of("OutOfMemory")
            }
            ReadError::LargeBatch { .. }
            | ReadError::SmallWindow { .. }
            | ReadError::NoQueue
            | ReadError::NoTimeout
            | ReadError::Plan(_) => of("InvalidOption"),
            ReadError::NoSuchField { .. } => of("NoSuchName"),
            _ => match error {
                ReadError::Store(error) => error.into(),
                error => Self::of_error("Error", &error, error.remedy()),
            },
        }
    }
}

impl From<NoMemory> for Raised {
    fn from(error: NoMemory) -> Self {
        Self::of_error("OutOfMemory", &error, None)
    }
}

impl From<StateError> for Raised {
    fn from(error: StateError) -> Self {
        Self::of_error("InvalidState", &error, error.remedy())
    }
}

impl From<ExpressionError> for Raised {
    fn from(error: ExpressionError) -> Self {
        Self::of_error("InvalidExpression", &error, None)
    }
}

impl From<SelectError> for Raised {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Store(error) => error.into(),
            SelectError::Subset(SubsetError::NoMemory(error)) => error.into(),
            error => Self::of_error("InvalidExpression", &error, error.remedy()),
        }
    }
}

impl From<WriteError> for Raised {
    fn from(error: WriteError) -> Self {
        let of = |kind| Self::of_error(kind, &error, error.remedy());
        match &error {
            WriteError::DestinationExists { path } | WriteError::NotReplaceable { path, .. } => {
                of("AlreadyExists").at(path)
            }
            WriteError::Locked { path }
            | WriteError::Io { path, .. }
            | WriteError::ResumeMismatch { path, .. }
            | WriteError::NotExtendable { path, .. }
            | WriteError::NotReducible { path, .. } => of("WriteFailed").at(path),
            WriteError::Url(url) => of("InvalidOption").at(&url.path),
            WriteError::Damaged { path, source } => of(kind_of_format(source)).at(path),
            WriteError::Sample { ordinal, key, .. } => {
                of("InvalidSample").for_sample(Some(*ordinal), Some(key.clone()))
            }
            WriteError::NotCopied { path, ordinal, key, .. } => {
                of("DamagedSample").for_sample(Some(*ordinal), Some(key.clone())).at(path)
            }
            // A `Writer` has no arguments for it, as `convert` has.
            WriteError::DuplicateKey { key, second, .. } => Self::of_error("InvalidSample", &error, None)
                .hinting("give every sample a key of its own, or write them without keys, keyed=False")
                .for_sample(Some(*second), Some(key.clone())),
            _ => of("WriteFailed"),
        }
    }
}

impl From<SourceError> for Raised {
    fn from(error: SourceError) -> Self {
        ConvertError::from(error).into()
    }
}

impl From<ConvertError> for Raised {
    fn from(error: ConvertError) -> Self {
        let of = |path| Self::of_error("ConvertFailed", &error, error.remedy()).at(path);
        match &error {
            ConvertError::Source(SourceError::Listing(
                ListingError::MissingRoot { path }
                | ListingError::NotAFolder { path }
                | ListingError::Unreadable { path, .. }
                | ListingError::NoFiles { path, .. },
            )) => of(path),
            ConvertError::Source(SourceError::Bad(bad)) => of(&bad.path),
            ConvertError::KeptWork { path }
            | ConvertError::Refused { path, .. }
            | ConvertError::Outside { path, .. }
            | ConvertError::InFile { path, .. }
            | ConvertError::Source(
                SourceError::Refused { path, .. }
                | SourceError::NoSamples { path, .. }
                | SourceError::KeyTooLong { path, .. }
                | SourceError::Path { path, .. },
            )
            | ConvertError::NoParent { path, .. }
            | ConvertError::NothingNew { path, .. }
            | ConvertError::NothingReadable { path, .. } => of(path),
            ConvertError::Source(SourceError::Url(url)) => {
                Self::of_error("InvalidOption", &error, error.remedy()).at(&url.path)
            }
            ConvertError::DestinationInsideSource { destination, .. } => of(destination),
            ConvertError::SourceInsideDestination { origin, .. } => of(origin),
            _ => match error {
                ConvertError::Write(WriteError::DuplicateKey { ref key, second, .. }) => {
                    let key = Some(key.clone());
                    Self::of_error("InvalidSample", &error, error.remedy()).for_sample(Some(second), key)
                }
                ConvertError::Write(error) => error.into(),
                ConvertError::Store(error) => error.into(),
                error => Self::of_error("ConvertFailed", &error, error.remedy()),
            },
        }
    }
}

impl From<ExportError> for Raised {
    fn from(error: ExportError) -> Self {
        let of = |kind| Self::of_error(kind, &error, error.remedy());
        match &error {
            ExportError::Exists { path } | ExportError::PartialExists { path } => of("AlreadyExists").at(path),
            ExportError::BadDestination { path, .. }
            | ExportError::Io { path, .. }
            | ExportError::Library { path, .. } => of("ExportFailed").at(path),
            ExportError::Url(url) => of("InvalidOption").at(&url.path),
            ExportError::BadName { ordinal, key, .. } => {
                of("ExportFailed").for_sample(Some(*ordinal), Some(key.clone()))
            }
            ExportError::BadSample { ordinal, key, .. } => of("ExportFailed").for_sample(Some(*ordinal), key.clone()),
            _ => match error {
                ExportError::Read(error) => error.into(),
                error => Self::of_error("ExportFailed", &error, error.remedy()),
            },
        }
    }
}
