//! One sample as a dictionary: its key if requested, its fields, its attributes.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use grainstore_format::to_usize;
use grainstore_reader::MappedPayload;
use grainstore_reader::engine::provide_pages;
use grainstore_store::Collection;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::Raised;
use crate::key;
use crate::logging;
use crate::opened::Opened;
use crate::payloads::Payloads;
use crate::schema::{FieldBytes, Name, Names, attribute_value};
use crate::view::{Bytes, bytes_filled};

/// The parts of a sample except its payload.
pub(crate) struct SampleParts<'a> {
    pub(crate) collection: &'a Collection,
    pub(crate) names: &'a Names,
    pub(crate) payloads: Payloads,
    pub(crate) ordinal: u64,
}

/// A payload in memory, and its fields.
pub(crate) struct PayloadView<'a> {
    pub(crate) owner: Arc<dyn Bytes>,
    /// The offset at which it starts in the owner's bytes.
    pub(crate) start: usize,
    pub(crate) fields: &'a [Option<Range<u64>>],
}

impl SampleParts<'_> {
    /// The dictionary.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>, payload: &PayloadView<'_>) -> PyResult<Bound<'py, PyDict>> {
        let sample = self.begun(py)?;
        for (place, field) in self.names.fields() {
            let value =
                match payload.fields.get(place).ok_or_else(|| Raised::bug("a sample lacks a field of the schema"))? {
                    None => py.None().into_bound(py),
                    Some(range) => {
                        let range = payload.start + to_usize(range.start)..payload.start + to_usize(range.end);
                        FieldBytes { owner: &payload.owner, range }.value(py, field, self.payloads)?
                    }
                };
            sample.set_item(field.0.object(py), value)?;
        }
        self.add_attributes(&sample)?;
        Ok(sample)
    }

    /// The dictionary, with the key if it was requested.
    fn begun<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sample = PyDict::new(py);
        if let Some(name) = &self.names.key {
            let key = py.detach(|| key::of_keyed(self.collection, self.ordinal))?;
            sample.set_item(name.object(py), key::to_python(py, &key)?)?;
        }
        Ok(sample)
    }

    fn add_attributes(&self, sample: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = sample.py();
        for (place, (name, _)) in self.names.attributes() {
            let Some(value) = self.collection.cached_attribute(place, self.ordinal) else {
                return self.add_read_attributes(sample);
            };
            sample.set_item(name.object(py), attribute_value(py, value)?)?;
        }
        Ok(())
    }

    /// The same, if it may have to wait for a disk.
    #[cold]
    fn add_read_attributes(&self, sample: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = sample.py();
        let values = py.detach(|| self.collection.attributes(self.ordinal)).map_err(Raised::from)?;
        for (place, (name, _)) in self.names.attributes() {
            let value = values.get(place).cloned().flatten();
            sample.set_item(name.object(py), attribute_value(py, value)?)?;
        }
        Ok(())
    }
}

thread_local! {
    /// A buffer for a payload until Python has a copy of it.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Samples until this thread looks for signals again.
    static SAMPLES_LEFT: Cell<u32> = const { Cell::new(0) };
}

/// Samples between two looks for signals, each of which takes a tenth of a small sample's time.
const SAMPLES_PER_LOOK: u32 = 64;

/// Maximum bytes that are kept for the next payload.
const SCRATCH_LEN_MAX: usize = 256 << 10;

/// Reads a sample and makes its dictionary, with the columns of `names`.
pub(crate) fn read<'py>(py: Python<'py>, opened: &Opened, names: &Names, ordinal: u64) -> PyResult<Bound<'py, PyDict>> {
    let collection = opened.reader.collection();
    let sample = SampleParts { collection, names, payloads: opened.how.payloads, ordinal };
    if !names.has_fields() {
        look_for_signals(py)?;
        let dict = sample.begun(py)?;
        sample.add_attributes(&dict)?;
        return Ok(dict);
    }
    if let Some(name) = opened.only_bytes() {
        look_for_signals(py)?;
        if let Some(mapped) = opened.reader.mapped(ordinal)
            && let Some(dict) = copied(py, &mapped, &sample, name)?
        {
            return Ok(dict);
        }
        let dict = sample.begun(py)?;
        dict.set_item(name.object(py), read_bytes(py, opened, ordinal)?)?;
        sample.add_attributes(&dict)?;
        return Ok(dict);
    }
    let read = logging::delivered(py, py.detach(|| opened.reader.get(ordinal)).map_err(Raised::from))?;
    let fields = read.fields().to_vec();
    sample.to_dict(py, &PayloadView { owner: Arc::new(read.payload), start: 0, fields: &fields })
}

/// Runs the handlers of signals, from time to time. Python 3.11 may miss a signal that arrives while a thread changes its
/// state. It looks again when its lock is taken, but a loop over mapped samples never gives the lock back.
fn look_for_signals(py: Python<'_>) -> PyResult<()> {
    let left = SAMPLES_LEFT.get();
    SAMPLES_LEFT.set(left.checked_sub(1).unwrap_or(SAMPLES_PER_LOOK));
    if left == 0 { py.check_signals() } else { Ok(()) }
}

/// Longest mapped payload that is copied without releasing Python's lock. Releasing the lock and taking it again would
/// take a tenth of the time of a sample that is in memory, which is what mapped files are for.
const AT_ONCE_LEN_MAX: usize = 16 << 10;

/// A sample with one field, whose payload is mapped; `None` if it is damaged or cannot be read.
fn copied<'py>(
    py: Python<'py>,
    mapped: &MappedPayload<'_>,
    sample: &SampleParts<'_>,
    name: &Name,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    // The payload is fetched from memory while everything else is created.
    mapped.prefetch();
    let dict = sample.begun(py)?;
    if !sample.names.attributes.is_empty() {
        // Its item comes before theirs in the dictionary.
        dict.set_item(name.object(py), py.None())?;
        sample.add_attributes(&dict)?;
    }
    let payload = bytes_filled(py, to_usize(mapped.payload_len()), |room| {
        if room.len() <= AT_ONCE_LEN_MAX {
            return mapped.copy_to(room);
        }
        py.detach(|| {
            provide_pages(room);
            mapped.copy_to(room)
        })
    })?;
    let Some(payload) = payload else { return Ok(None) };
    dict.set_item(name.object(py), payload)?;
    Ok(Some(dict))
}

/// A payload as `bytes`, copied through a buffer that is reused.
fn read_bytes<'py>(py: Python<'py>, opened: &Opened, ordinal: u64) -> PyResult<Bound<'py, PyBytes>> {
    let mut scratch = SCRATCH.take();
    let read = py.detach(|| opened.reader.get_into(ordinal, &mut scratch));
    let payload = read.map(|()| PyBytes::new(py, &scratch));
    if scratch.capacity() <= SCRATCH_LEN_MAX {
        SCRATCH.set(scratch);
    }
    logging::delivered(py, payload.map_err(Raised::from))
}
