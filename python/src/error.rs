//! From the libraries' errors to the package's exceptions, which are classes of `grainstore._errors`.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::path::Path;

use grainstore_converters::ConvertError;
use grainstore_export::ExportError;
use grainstore_format::FormatError;
use grainstore_reader::plan::PlanError;
use grainstore_reader::{ExpressionError, ReadError, SelectError, StateError, engine};
use grainstore_sources::SourceError;
use grainstore_sources::folder::listing::ListingError;
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
    path: Option<OsString>,
    segment: Option<OsString>,
    ordinal: Option<u64>,
    key: Option<Vec<u8>>,
    offset: Option<u64>,
    /// What the system said.
    errno: Option<i32>,
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

    /// The same, and what the caller may have meant.
    pub(crate) fn hinting(mut self, hint: &str) -> Self {
        self.message = format!("{}; {hint}", self.message);
        self
    }

    /// An error of the libraries, and what caused it.
    fn told(kind: &'static str, error: &(dyn Error + 'static)) -> Self {
        let mut raised = Self::new(kind, grainstore_format::escape_controls(&chain(error)));
        raised.place.errno = errno(error);
        raised
    }

    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.place.path = Some(path.into());
        self
    }

    fn of(mut self, ordinal: Option<u64>, key: Option<Vec<u8>>) -> Self {
        (self.place.ordinal, self.place.key) = (ordinal, key);
        self
    }

    fn in_segment(mut self, segment: &Path, offset: Option<u64>) -> Self {
        self.place.segment = Some(segment.into());
        self.place.offset = offset;
        self
    }

    /// The same, with what is an option of the command as the argument that it is here. A path in front stays as it is.
    fn in_python(mut self) -> Self {
        let path = self.place.path.as_ref().map(|path| grainstore_format::escape_bytes(path.as_encoded_bytes()));
        let kept = path.filter(|path| self.message.starts_with(path.as_str())).map_or(0, |path| path.len());
        let rest = self.message.split_off(kept);
        self.message.push_str(&in_python(&rest));
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

/// Options of the command that messages name, and what they are in Python.
const ARGUMENTS: [(&str, &str); 10] = [
    ("--restart", "restart=True"),
    ("--resume", "resume=True"),
    ("--from", "format="),
    ("--map", "map="),
    ("--raw", "raw=True"),
    ("--database", "database="),
    ("--values", "values="),
    ("--labels", "labels="),
    ("--skip-bad", "skip_bad=True"),
    ("--allow-external", "allow_external=True"),
];

/// Words that are options of the command, as the arguments that they are here.
pub(crate) fn in_python(text: &str) -> String {
    let is_border = |around: Option<char>| around.is_none_or(|one| !one.is_alphanumeric() && !"-_/.".contains(one));
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find("--") {
        let (before, from) = rest.split_at(place);
        said.push_str(before);
        let known = ARGUMENTS.iter().find(|(option, _)| {
            from.strip_prefix(option).is_some_and(|behind| is_border(behind.chars().next().filter(|&one| one != '.')))
        });
        let (taken, put) = match known {
            Some((option, argument)) if is_border(before.chars().last()) => (option.len(), *argument),
            _ => (2, "--"),
        };
        said.push_str(put);
        rest = &from[taken..];
    }
    said.push_str(rest);
    said
}

/// The number of the system's error that caused it.
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
        let of = |kind| Self::told(kind, &error);
        match &error {
            StoreError::NotFound { path } => of("DatasetNotFound").at(path),
            StoreError::Io { path, .. } => of("ReadFailed").at(path),
            StoreError::Format { path, source } => of(kind_of_format(source)).at(path),
            StoreError::NotADataset { path, .. } => of("NotADataset").at(path).in_python(),
            StoreError::Mismatch { path, .. } => of("Damaged").at(path),
            StoreError::Outside { path, .. } => {
                let message = format!("{} (allow_external=True allows it)", chain(&error));
                Self::new("InvalidOption", message).at(path)
            }
            StoreError::NoSuchOrdinal { ordinal, .. } => of("NoSuchOrdinal").of(Some(*ordinal), None),
            StoreError::NoSuchAttribute { .. } => of("NoSuchName"),
            StoreError::NoSuchGeneration { path, .. } => of("InvalidOption").at(path),
            StoreError::Unlike { second, .. } => of("InvalidOption").at(second),
            StoreError::NoMembers => of("InvalidOption"),
            StoreError::Sample { path, ordinal, key, offset, .. } => {
                of("DamagedSample").of(Some(*ordinal), key.clone()).in_segment(path, Some(*offset)).at(path)
            }
            _ => of("Error"),
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
        let of = |kind| Self::told(kind, &error);
        match &error {
            ReadError::Unreadable { ordinal, key, source } => {
                let raised = of("UnreadableSample").of(Some(*ordinal), key.clone());
                raised.in_segment(source.path(), source.offset()).at(source.path())
            }
            ReadError::Closed { source } => of("ReadFailed").at(source.path()),
            ReadError::Engine(engine::EngineError::Forked { .. }) | ReadError::Forked => of("Forked"),
            ReadError::Engine(_) => of("ReadFailed"),
            ReadError::Stalled { path, .. } => of("ReadFailed").at(path),
            ReadError::State(_) | ReadError::Plan(PlanError::PositionOutOfRange { .. }) => of("InvalidState"),
            ReadError::Option { .. } | ReadError::Plan(_) => of("InvalidOption"),
            ReadError::NoSuchField { .. } => of("NoSuchName"),
            ReadError::NoMemory { .. } => of("OutOfMemory"),
            _ => match error {
                ReadError::Store(error) => error.into(),
                error => Self::told("Error", &error),
            },
        }
    }
}

impl From<StateError> for Raised {
    fn from(error: StateError) -> Self {
        Self::told("InvalidState", &error)
    }
}

impl From<ExpressionError> for Raised {
    fn from(error: ExpressionError) -> Self {
        Self::told("InvalidExpression", &error)
    }
}

impl From<SelectError> for Raised {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Store(error) => error.into(),
            error => Self::told("InvalidExpression", &error),
        }
    }
}

impl From<WriteError> for Raised {
    fn from(error: WriteError) -> Self {
        let of = |kind| Self::told(kind, &error);
        match &error {
            WriteError::DestinationExists { path } => {
                let message = format!("{} (overwrite=True replaces a dataset)", chain(&error));
                Self::new("AlreadyExists", message).at(path)
            }
            WriteError::NotReplaceable { path, .. } => of("AlreadyExists").at(path),
            WriteError::Locked { path }
            | WriteError::Io { path, .. }
            | WriteError::ResumeMismatch { path, .. }
            | WriteError::NotExtendable { path, .. } => of("WriteFailed").at(path),
            WriteError::Damaged { path, source } => of(kind_of_format(source)).at(path),
            WriteError::Sample { ordinal, key, .. } => of("InvalidSample").of(Some(*ordinal), Some(key.clone())),
            WriteError::DuplicateKey { key, second, .. } => of("InvalidSample").of(Some(*second), Some(key.clone())),
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
        let of = |path| Self::told("ConvertFailed", &error).at(path).in_python();
        match &error {
            ConvertError::Source(SourceError::Listing(
                ListingError::MissingRoot { path }
                | ListingError::NotAFolder { path }
                | ListingError::Unreadable { path, .. }
                | ListingError::NoFiles { path, .. },
            )) => of(path),
            ConvertError::Source(SourceError::Bad(bad)) => of(&bad.path),
            ConvertError::KeptWork { path } => {
                let ways = "resume=True goes on with them, restart=True throws them away";
                Self::new("ConvertFailed", format!("{} ({ways})", chain(&error))).at(path)
            }
            ConvertError::Refused { path, .. }
            | ConvertError::Outside { path, .. }
            | ConvertError::InFile { path, .. }
            | ConvertError::Source(
                SourceError::Refused { path, .. }
                | SourceError::KeyTooLong { path, .. }
                | SourceError::Path { path, .. },
            )
            | ConvertError::NoParent { path, .. }
            | ConvertError::NothingReadable { path, .. } => of(path),
            ConvertError::DestinationInsideSource { destination, .. } => of(destination),
            ConvertError::SourceInsideDestination { origin, .. } => of(origin),
            _ => match error {
                ConvertError::Write(error) => Self::from(error).in_python(),
                ConvertError::Store(error) => error.into(),
                error => Self::told("ConvertFailed", &error).in_python(),
            },
        }
    }
}

impl From<ExportError> for Raised {
    fn from(error: ExportError) -> Self {
        let of = |kind| Self::told(kind, &error);
        match &error {
            ExportError::Exists { path } | ExportError::PartialExists { path } => of("AlreadyExists").at(path),
            ExportError::BadDestination { path, .. }
            | ExportError::Io { path, .. }
            | ExportError::Library { path, .. } => of("ExportFailed").at(path),
            ExportError::BadName { ordinal, key, .. } => of("ExportFailed").of(Some(*ordinal), Some(key.clone())),
            ExportError::BadSample { ordinal, key, .. } => of("ExportFailed").of(Some(*ordinal), key.clone()),
            _ => match error {
                ExportError::Read(error) => error.into(),
                error => Self::told("ExportFailed", &error),
            },
        }
    }
}
