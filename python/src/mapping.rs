//! A Python function between a source and the packer: `convert(..., transform=f)`.
//!
//! The function runs in worker processes (`grainstore/_map_workers.py`). A thread that reads the source takes a free
//! worker, sends it a sample and waits for the result; Python's lock is held for the sending and receiving only.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use grainstore_converters::{MapSample, Mapped};
use grainstore_format::{Metadata, Schema, to_usize};
use grainstore_sources::{Layout, Remark, Source, SourceSample};
use grainstore_writer::Sample;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyList};

use crate::error::Raised;
use crate::kept_names::KeptNames;
use crate::key;
use crate::payloads::Payloads;
use crate::progress::BackgroundJob;
use crate::schema::{FieldBytes, Names, attribute_value};
use crate::view::Bytes;
use crate::writer::{sample_of, schema_of, user_metadata};

/// Samples from which the types and lengths of the results are learnt.
const FIRST_SAMPLES: usize = 16;

/// How long a thread waits for a worker before it looks whether the conversion was stopped.
const PATIENCE_S: f64 = 0.1;

/// The worker processes, and what the user says of the result.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TransformArguments {
    workers: Py<PyAny>,
    /// Part of what must be the same for a conversion to be resumed.
    pub(crate) words: String,
    metadata: Option<Py<PyAny>>,
}

/// The samples of a source as Python dictionaries, and back.
pub(crate) struct PythonMap<'a> {
    workers: &'a Py<PyAny>,
    job: &'a BackgroundJob,
    given: Names,
    made: Names,
    is_keyed: bool,
    metadata: Metadata,
    names: KeptNames,
    growth: u64,
    /// Why the workers can no longer be used.
    fatal: Mutex<Option<PyErr>>,
}

/// What a worker answered.
enum Answer {
    Made(Sample),
    LeftOut,
    Failed(String),
}

impl<'a> PythonMap<'a> {
    /// Asks the workers about the first samples. `expected` is the schema of the dataset that the results are added to.
    pub(crate) fn begin(
        transform: &'a TransformArguments,
        source: &dyn Source,
        expected: Option<&Schema>,
        job: &'a BackgroundJob,
    ) -> PyResult<Self> {
        let description = source.description();
        let given = Names::of(&description.metadata.schema, false);
        let is_keyed = description.is_keyed;
        let first = first_samples(source)?;
        let (types, user, growth) = Python::attach(|py| -> PyResult<_> {
            let samples = PyList::empty(py);
            for sample in first {
                samples.append(to_dict(py, &given, is_keyed, sample)?)?;
            }
            let stop = job.stop();
            let stopped = PyCFunction::new_closure(py, None, None, move |_, _| stop.load(Relaxed))?;
            let expected = expected.map(|schema| Names::of(schema, false).types(py)).transpose()?;
            let asked =
                transform.workers.bind(py).call_method1("begin", (samples, given.types(py)?, expected, stopped))?;
            let (types, growth): (Bound<'_, PyDict>, u64) = asked.extract()?;
            let user = transform.metadata.as_ref().map(|user| user_metadata(user.bind(py))).transpose()?;
            Ok((schema_of(&types)?, user, growth))
        })?;
        let (names, metadata) = KeptNames::of(&description.metadata, types, user).map_err(Raised::option)?;
        let made = Names::of(&metadata.schema, false);
        let fatal = Mutex::default();
        Ok(Self { workers: &transform.workers, job, given, made, is_keyed, metadata, names, growth, fatal })
    }

    pub(crate) fn mapped<'s>(&'s self, source: &'s dyn Source) -> Mapped<'s> {
        Mapped::new(source, self.metadata.clone(), self, self.growth)
    }

    /// What is to be known of the results.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Remark> {
        self.names.warnings().map(Remark::from)
    }

    /// Whether the conversion cannot go on.
    pub(crate) fn has_failed(&self) -> bool {
        self.fatal().is_some()
    }

    /// The error that ended the conversion, if it was one of the workers.
    pub(crate) fn failure(&self) -> Option<PyErr> {
        self.fatal().take()
    }

    fn fatal(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.job.cancelled() || self.has_failed()
    }

    /// The result for a sample; `None` where the conversion was stopped meanwhile.
    fn ask(&self, py: Python<'_>, sample: Sample) -> PyResult<Option<Answer>> {
        let before = self.names.before(&sample.attributes);
        let sample = to_dict(py, &self.given, self.is_keyed, sample)?;
        let workers = self.workers.bind(py);
        let worker = loop {
            if self.stopped() {
                return Ok(None);
            }
            let worker = workers.call_method1("take", (PATIENCE_S,))?;
            if !worker.is_none() {
                break worker;
            }
        };
        workers.call_method1("send", (&worker, &sample))?;
        while !workers.call_method1("ready", (&worker, PATIENCE_S))?.is_truthy()? {
            if self.stopped() {
                return Ok(None);
            }
        }
        let (kind, result): (String, Bound<'_, PyAny>) =
            workers.call_method1("receive", (&worker, &sample))?.extract()?;
        Ok(Some(match kind.as_str() {
            "made" => match sample_of(&self.made, self.is_keyed, py, result.cast::<PyDict>()?) {
                Ok(sample) => match self.names.check(&before, &sample.attributes) {
                    Ok(()) => Answer::Made(sample),
                    Err(why) => Answer::Failed(format!("the transform gave {why}")),
                },
                Err(error) => Answer::Failed(format!("the transform gave {}", error.value(py))),
            },
            "failed" => Answer::Failed(result.extract()?),
            _ => Answer::LeftOut,
        }))
    }
}

impl MapSample for PythonMap<'_> {
    fn map(&self, sample: Sample) -> Result<Option<Sample>, Remark> {
        match Python::attach(|py| self.ask(py, sample)) {
            Ok(Some(Answer::Made(sample))) => Ok(Some(sample)),
            Ok(Some(Answer::LeftOut)) => Ok(None),
            Ok(Some(Answer::Failed(why))) => Err(why.into()),
            Ok(None) => Err("the conversion was stopped".into()),
            Err(error) => {
                self.fatal().get_or_insert(error);
                Err("the transform cannot go on".into())
            }
        }
    }
}

/// The first samples of a source. Samples that cannot be read are passed over here; packing reports them.
fn first_samples(source: &dyn Source) -> Result<Vec<Sample>, Raised> {
    let description = source.description();
    if description.is_once {
        return Err(Raised::option("transform: a stream is read once, and the first samples are needed twice"));
    }
    let mut samples = Vec::new();
    for part in 0..description.parts.len() {
        // Where every sample is opened by itself, a reader has one.
        let positions = match source.blocks(part) {
            Ok(Some(grainstore_sources::Blocks::Each(count))) => count.min(FIRST_SAMPLES as u64),
            _ => 1,
        };
        for position in 0..positions {
            let Ok(mut opened) = source.open(part, position, Layout::Packed) else { continue };
            while samples.len() < FIRST_SAMPLES
                && let Ok(Some(SourceSample::Whole { sample, .. })) = opened.next()
            {
                samples.push(sample);
            }
            if samples.len() == FIRST_SAMPLES {
                return Ok(samples);
            }
        }
    }
    Ok(samples)
}

fn to_dict<'py>(py: Python<'py>, names: &Names, is_keyed: bool, sample: Sample) -> PyResult<Bound<'py, PyDict>> {
    let Sample { key, attributes, payload, fields } = sample;
    let dict = PyDict::new(py);
    if is_keyed {
        dict.set_item("key", key::to_python(py, &key)?)?;
    }
    let whole = Some(0..payload.len() as u64);
    let owner: Arc<dyn Bytes> = Arc::new(payload);
    for (number, field) in names.fields.iter().enumerate() {
        let range = if fields.is_empty() { whole.clone() } else { fields.get(number).cloned().flatten() };
        let value = match range {
            Some(range) => {
                let range = to_usize(range.start)..to_usize(range.end);
                FieldBytes { owner: &owner, range }.value(py, field, Payloads::Bytes)?
            }
            None => py.None().into_bound(py),
        };
        dict.set_item(field.0.object(py), value)?;
    }
    for ((name, _), value) in names.attributes.iter().zip(attributes) {
        dict.set_item(name.object(py), attribute_value(py, value)?)?;
    }
    Ok(dict)
}
