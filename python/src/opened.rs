//! What a dataset and its views share: the reader, until it is closed, and how to open it again.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use grainstore_format::{FieldType, Fingerprint};
use grainstore_reader::{Reader, ReaderOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::argument::parsed;
use crate::error::Raised;
use crate::fork::release;
use crate::payloads::Payloads;
use crate::schema::{Name, Names};

/// How a dataset was opened: enough to open it again in another process.
#[derive(Clone)]
pub(crate) struct How {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) io: String,
    pub(crate) engine: String,
    pub(crate) options: ReaderOptions,
    pub(crate) payloads: Payloads,
    pub(crate) keys: bool,
}

impl How {
    /// The arguments of `open`, by name. Paths are absolute, since the other process may have another working
    /// directory.
    pub(crate) fn arguments<'py>(&self, py: Python<'py>, generation: Option<usize>) -> PyResult<Bound<'py, PyDict>> {
        // If this fails, the path stays as it is: opening it reports why.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let paths: Vec<PathBuf> = self.paths.iter().map(absolute).collect();
        let arguments = PyDict::new(py);
        arguments.set_item("paths", PyTuple::new(py, paths)?)?;
        arguments.set_item("io", &self.io)?;
        arguments.set_item("engine", &self.engine)?;
        arguments.set_item("threads", self.options.threads)?;
        arguments.set_item("queue_bytes", self.options.queue_len)?;
        arguments.set_item("cache_bytes", self.options.cache_bytes)?;
        arguments.set_item("generation", generation)?;
        arguments.set_item("allow_external", self.options.allow_external)?;
        arguments.set_item("timeout_s", self.options.timeout.as_secs_f64())?;
        arguments.set_item("payload", self.payloads.name())?;
        arguments.set_item("keys", self.keys)?;
        Ok(arguments)
    }
}

/// The numeric options of `open`, as Python gives them.
pub(crate) struct Numbers {
    pub(crate) threads: usize,
    pub(crate) queue_bytes: u64,
    pub(crate) cache_bytes: u64,
    pub(crate) generation: Option<usize>,
    pub(crate) allow_external: bool,
    pub(crate) timeout_s: f64,
}

impl Numbers {
    pub(crate) fn options(&self, io: &str, engine: &str) -> Result<ReaderOptions, Raised> {
        let timeout = Duration::try_from_secs_f64(self.timeout_s)
            .map_err(|_| Raised::option(format!("timeout_s is {}, expected seconds above 0", self.timeout_s)))?;
        Ok(ReaderOptions {
            io: parsed(io)?,
            engine: parsed(engine)?,
            threads: self.threads,
            queue_len: self.queue_bytes,
            cache_bytes: self.cache_bytes,
            generation: self.generation,
            allow_external: self.allow_external,
            timeout,
            ..ReaderOptions::default()
        })
    }
}

/// A reader, and the parts of its schema that Python needs.
pub(crate) struct Opened {
    pub(crate) reader: Reader,
    pub(crate) names: Arc<Names>,
    pub(crate) how: How,
    /// Whether a sample's payload is a single field, which is `bytes` in Python.
    only_bytes: bool,
}

impl Opened {
    pub(crate) fn open(how: How) -> Result<Self, Raised> {
        let reader = Reader::open_all(&how.paths, how.options.clone())?;
        let collection = reader.collection();
        if how.keys && !collection.is_keyed() {
            return Err(Raised::option("keys=True: the samples of this dataset have no keys"));
        }
        let schema = collection.schema();
        if how.keys && (schema.attribute("key").is_some() || schema.field("key").is_some()) {
            return Err(Raised::option(
                "keys=True: an attribute or field of this dataset is called \"key\" already; its keys are in keys()",
            ));
        }
        let names = Arc::new(Names::of(schema, how.keys));
        let is_bytes = matches!(&names.fields[..], [(_, FieldType::Bytes)]) && how.payloads == Payloads::Bytes;
        let only_bytes = is_bytes && !collection.has_field_columns();
        Ok(Self { reader, names, how, only_bytes })
    }

    /// The name of the only field, if it is the whole payload and `bytes` in Python: the fast path.
    pub(crate) fn only_bytes(&self) -> Option<&Name> {
        self.names.fields.first().filter(|_| self.only_bytes).map(|(name, _)| name)
    }

    /// The generation that is open, if this is a single dataset.
    pub(crate) fn generation(&self) -> Option<usize> {
        let collection = self.reader.collection();
        let only = if collection.member_count() == 1 { collection.member(0).ok() } else { None };
        only.and_then(|dataset| dataset.generation_of(dataset.fingerprint()))
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.reader.collection().fingerprint()
    }
}

/// The reader, until it is closed: shared by all views.
pub(crate) struct SharedReader(RwLock<Option<Arc<Opened>>>);

impl SharedReader {
    pub(crate) fn new(opened: Opened) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Some(Arc::new(opened)))))
    }

    /// The reader. The lock is held only for a moment, since a thread that holds Python's lock may be waiting for it.
    pub(crate) fn get(&self) -> Result<Arc<Opened>, Raised> {
        let place = self.0.read().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().map(Arc::clone).ok_or_else(|| Raised::closed("dataset"))
    }

    pub(crate) fn close(&self) -> Option<Arc<Opened>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for SharedReader {
    fn drop(&mut self) {
        if let Some(opened) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            release(opened);
        }
    }
}
