//! One sample as a file object: what `grainstore._sample_file.SampleFile` reads from.

use std::io::{Seek, SeekFrom};

use grainstore_format::memory::zeroed;
use grainstore_host::ForkLock;
use grainstore_reader::SampleFile;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Raised;
use crate::fork::lock;
use crate::logging;
use crate::opened::Opened;
use crate::schema::Names;

/// The bytes of a sample or of one of its fields, and a position in them that all threads share.
#[pyclass(frozen, module = "grainstore._core", name = "_SampleBytes")]
pub(crate) struct SampleBytes {
    file: ForkLock<SampleFile>,
    size: u64,
}

impl SampleBytes {
    /// Those of a field; of the only one of `names` if none is named.
    pub(crate) fn open(opened: &Opened, names: &Names, ordinal: u64, field: Option<&str>) -> Result<Self, Raised> {
        let fields: Vec<&str> = names.fields().map(|(_, (name, _))| name.text()).collect();
        let field = match (field, &fields[..]) {
            (Some(field), _) => field,
            (None, [only]) => only,
            (None, []) => return Err(Raised::option("the columns of this view are no fields: name one by field=")),
            (None, _) => {
                let known = fields.join(", ");
                return Err(Raised::option(format!("a sample has several fields ({known}): name one by field=")));
            }
        };
        let file = opened.reader.open_sample(ordinal, Some(field))?.ok_or_else(|| {
            let shown = grainstore_format::escape_bytes(field.as_bytes());
            let key = opened.reader.collection().key(ordinal).ok().flatten();
            Raised::new("NoSuchName", format!("sample {ordinal} lacks the field \"{shown}\""))
                .for_sample(Some(ordinal), key)
        })?;
        Ok(Self { size: file.file_len(), file: ForkLock::new(file) })
    }
}

#[pymethods]
impl SampleBytes {
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// At most `len_max` bytes from the position on, fewer only at the end.
    fn read<'py>(&self, py: Python<'py>, len_max: u64) -> PyResult<Bound<'py, PyBytes>> {
        // Before the read, as an exception from a handler would lose its bytes after it.
        logging::deliver(py)?;
        let bytes = py.detach(|| -> Result<_, Raised> {
            let mut file = lock(&self.file)?;
            let mut bytes = zeroed(len_max.min(self.size.saturating_sub(file.position())))?;
            let len = file.fill(&mut bytes)?;
            bytes.truncate(len);
            Ok(bytes)
        });
        match bytes {
            Ok(bytes) => Ok(PyBytes::new(py, &bytes)),
            Err(error) => logging::delivered(py, Err(error)),
        }
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        // Another thread may be reading, and hold the lock meanwhile.
        Ok(py.detach(|| lock(&self.file).map(|file| file.position()))?)
    }

    /// The new position; None if it would be before the start.
    fn seek(&self, py: Python<'_>, offset: i64, whence: u8) -> PyResult<Option<u64>> {
        let to = match whence {
            0 => u64::try_from(offset).ok().map(SeekFrom::Start),
            1 => Some(SeekFrom::Current(offset)),
            _ => Some(SeekFrom::End(offset)),
        };
        let Some(to) = to else { return Ok(None) };
        Ok(py.detach(|| lock(&self.file).map(|mut file| file.seek(to).ok()))?)
    }
}
