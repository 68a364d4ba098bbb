//! Reads the index entries of all selected samples, before anything is written.

use grainstore_format::AttributeValue;

use crate::ExportError;
use crate::job::ExportJob;

/// Samples between two checks whether to stop.
const LOOK_EVERY: u64 = 1024;

/// What the index stores of a sample.
pub(crate) struct Indexed {
    pub(crate) ordinal: u64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) attributes: Vec<Option<AttributeValue>>,
    pub(crate) payload_len: u64,
}

impl Indexed {
    /// The error of a sample that the format cannot hold.
    pub(crate) fn refused(&self, why: String) -> ExportError {
        ExportError::BadSample { ordinal: self.ordinal, key: self.key.clone(), why }
    }

    /// Fails if the payload is longer than the format can hold.
    pub(crate) fn check_len(&self, len_max: u64, what: &str) -> Result<(), ExportError> {
        if self.payload_len <= len_max {
            return Ok(());
        }
        Err(self.refused(format!("it has {} bytes, {what} holds {len_max} at most", self.payload_len)))
    }
}

/// Passes every selected sample to `look`, in order.
pub(crate) fn each(
    job: &ExportJob<'_>,
    mut look: impl FnMut(Indexed) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let collection = job.collection();
    for (position, ordinal) in (0..).zip(job.selection.ordinals(0..job.selection.len())) {
        if position % LOOK_EVERY == 0 {
            job.go_on()?;
        }
        look(Indexed {
            ordinal,
            key: collection.key(ordinal)?,
            attributes: job.columns().attributes(collection, ordinal)?,
            payload_len: collection.locate(ordinal)?.raw_len(),
        })?;
    }
    Ok(())
}

/// Passes the payload length of every selected sample to `look`, in order.
pub(crate) fn each_len(job: &ExportJob<'_>, mut look: impl FnMut(u64)) -> Result<(), ExportError> {
    for (position, ordinal) in (0..).zip(job.selection.ordinals(0..job.selection.len())) {
        if position % LOOK_EVERY == 0 {
            job.go_on()?;
        }
        look(job.collection().locate(ordinal)?.raw_len());
    }
    Ok(())
}
