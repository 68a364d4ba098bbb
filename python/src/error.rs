//! From the libraries' errors to the package's exceptions, which are classes of `grainstore._errors`.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;

use grainstore_converters::ConvertError;
use grainstore_export::ExportError;
use grainstore_format::FormatError;
use grainstore_reader::plan::PlanError;
use grainstore_reader::{ExpressionError, ReadError, SelectError, StateError};
use grainstore_store::StoreError;
use grainstore_writer::WriteError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// An exception to be raised; made while no lock of Python's is held.
#[derive(Debug)]
pub(crate) struct Raised {
    /// The class in `grainstore._errors`.
    kind: &'static str,
    message: String,
    place: Box<Place>,
}

/// What went wrong where, as far as that is known.
#[derive(Debug, Default)]
struct Place {
    path: Option<String>,
    segment: Option<String>,
    ordinal: Option<u64>,
    key: Option<Vec<u8>>,
    offset: Option<u64>,
}

impl Raised {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: Box::default() }
    }

    /// An argument that cannot be.
    pub(crate) fn option(message: impl Into<String>) -> Self {
        Self::new("InvalidOption", message)
    }

    pub(crate) fn no_such_ordinal(index: impl Display, len: u64) -> Self {
        Self::new("NoSuchOrdinal", format!("no sample {index}: there are {len}, numbered from 0"))
    }

    pub(crate) fn no_such_key(key: &[u8]) -> Self {
        let message = format!("no sample has the key \"{}\"", grainstore_format::escape_bytes(key));
        Self::new("NoSuchKey", message).of(None, Some(key.to_vec()))
    }

    pub(crate) fn closed(what: &str) -> Self {
        Self::new("Closed", format!("the {what} was closed"))
    }

    fn at(mut self, path: &Path) -> Self {
        self.place.path = Some(path.to_string_lossy().into_owned());
        self
    }

    fn of(mut self, ordinal: Option<u64>, key: Option<Vec<u8>>) -> Self {
        (self.place.ordinal, self.place.key) = (ordinal, key);
        self
    }

    fn in_segment(mut self, segment: &Path, offset: u64) -> Self {
        self.place.segment = Some(segment.to_string_lossy().into_owned());
        self.place.offset = Some(offset);
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
        Ok(PyErr::from_value(class.call((self.message,), Some(&facts))?))
    }
}

impl From<Raised> for PyErr {
    fn from(raised: Raised) -> Self {
        Python::attach(|py| raised.raised(py).unwrap_or_else(|error| error))
    }
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
        let message = chain(&error);
        match &error {
            StoreError::NotFound { path } => Self::new("DatasetNotFound", message).at(path),
            StoreError::Io { path, .. } => Self::new("ReadFailed", message).at(path),
            StoreError::Format { path, source } => Self::new(kind_of_format(source), message).at(path),
            StoreError::NotADataset { path, .. } => Self::new("NotADataset", message).at(path),
            StoreError::Mismatch { path, .. } => Self::new("Damaged", message).at(path),
            StoreError::Outside { path, .. } => {
                Self::new("InvalidOption", format!("{message} (allow_external=True allows it)")).at(path)
            }
            StoreError::NoSuchOrdinal { ordinal, .. } => Self::new("NoSuchOrdinal", message).of(Some(*ordinal), None),
            StoreError::NoSuchAttribute { .. } => Self::new("NoSuchName", message),
            StoreError::NoSuchGeneration { path, .. } => Self::new("InvalidOption", message).at(path),
            StoreError::NoMembers | StoreError::Unlike { .. } => Self::new("InvalidOption", message),
            StoreError::Sample { path, ordinal, key, offset, .. } => {
                Self::new("DamagedSample", message).of(Some(*ordinal), key.clone()).in_segment(path, *offset)
            }
            _ => Self::new("Error", message),
        }
    }
}

fn kind_of_format(error: &FormatError) -> &'static str {
    match error {
        FormatError::TooNew { .. } | FormatError::UnknownFeature { .. } => "TooNew",
        FormatError::NotGrainstore { .. } => "NotADataset",
        _ => "Damaged",
    }
}

impl From<ReadError> for Raised {
    fn from(error: ReadError) -> Self {
        let message = chain(&error);
        match error {
            ReadError::Store(error) => error.into(),
            ReadError::Unreadable { ordinal, key, .. } => Self::new("UnreadableSample", message).of(Some(ordinal), key),
            ReadError::Closed { .. } | ReadError::Engine(_) => Self::new("ReadFailed", message),
            ReadError::Stalled { path, .. } => Self::new("ReadFailed", message).at(&path),
            ReadError::Plan(PlanError::PositionOutOfRange { .. }) => Self::new("InvalidState", message),
            ReadError::Option { .. } | ReadError::Plan(_) => Self::new("InvalidOption", message),
            ReadError::Forked => Self::new("Forked", message),
            ReadError::State(_) => Self::new("InvalidState", message),
            ReadError::NoSuchField { .. } => Self::new("NoSuchName", message),
            _ => Self::new("Error", message),
        }
    }
}

impl From<StateError> for Raised {
    fn from(error: StateError) -> Self {
        Self::new("InvalidState", chain(&error))
    }
}

impl From<ExpressionError> for Raised {
    fn from(error: ExpressionError) -> Self {
        Self::new("InvalidExpression", chain(&error))
    }
}

impl From<SelectError> for Raised {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Store(error) => error.into(),
            error => Self::new("InvalidExpression", chain(&error)),
        }
    }
}

impl From<WriteError> for Raised {
    fn from(error: WriteError) -> Self {
        let message = chain(&error);
        match error {
            WriteError::DestinationExists { path } => {
                Self::new("AlreadyExists", format!("{message} (overwrite=True replaces a dataset)")).at(&path)
            }
            WriteError::NotReplaceable { path, .. } => Self::new("AlreadyExists", message).at(&path),
            WriteError::Locked { path } | WriteError::Io { path, .. } => Self::new("WriteFailed", message).at(&path),
            WriteError::Sample { ordinal, key, .. } => Self::new("InvalidSample", message).of(Some(ordinal), Some(key)),
            WriteError::DuplicateKey { key, second, .. } => {
                Self::new("InvalidSample", message).of(Some(second), Some(key))
            }
            _ => Self::new("WriteFailed", message),
        }
    }
}

impl From<ConvertError> for Raised {
    fn from(error: ConvertError) -> Self {
        let message = chain(&error);
        match error {
            ConvertError::Write(error) => error.into(),
            ConvertError::Store(error) => error.into(),
            ConvertError::KeptWork { path } => {
                let ways = "resume=True goes on with them, restart=True throws them away";
                Self::new("ConvertFailed", format!("{message} ({ways})")).at(&path)
            }
            ConvertError::Refused { path, .. } | ConvertError::NothingReadable { path, .. } => {
                Self::new("ConvertFailed", message).at(&path)
            }
            _ => Self::new("ConvertFailed", message),
        }
    }
}

impl From<ExportError> for Raised {
    fn from(error: ExportError) -> Self {
        let message = chain(&error);
        match error {
            ExportError::Read(error) => error.into(),
            ExportError::Exists { path } | ExportError::PartialExists { path } => {
                Self::new("AlreadyExists", message).at(&path)
            }
            ExportError::BadName { ordinal, key, .. } => {
                Self::new("ExportFailed", message).of(Some(ordinal), Some(key))
            }
            ExportError::BadSample { ordinal, key, .. } => Self::new("ExportFailed", message).of(Some(ordinal), key),
            _ => Self::new("ExportFailed", message),
        }
    }
}
