//! Reads a group of samples: their payloads, and their facts from the index.

use std::io;
use std::ops::Range;

use grainstore_format::AttributeValue;
use grainstore_reader::{Batch, OnDamage, ReadError};

use crate::job::ExportJob;
use crate::payload::Payload;
use crate::read_groups::ReadGroup;
use crate::{ExportError, Progress};

/// What the index stores of a sample.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) ordinal: u64,
    /// `None` in a dataset without keys.
    pub(crate) key: Option<Vec<u8>>,
    /// In the order of the schema.
    pub(crate) attributes: Vec<Option<AttributeValue>>,
    pub(crate) payload_len: u64,
    /// Their byte ranges in the payload, in the order of the schema.
    pub(crate) fields: Vec<Option<Range<u64>>>,
}

impl Facts {
    /// Bytes of the fields that are written.
    pub(crate) fn written_len(&self) -> u64 {
        self.fields.iter().flatten().map(|range| range.end.saturating_sub(range.start)).sum()
    }
}

/// A sample to be written.
pub(crate) struct ExportedSample<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) payload: Payload<'a>,
}

/// A group of samples that was read.
pub(crate) struct Fetched {
    facts: Vec<Facts>,
    /// Empty if the payload is streamed.
    batches: Vec<Batch>,
}

impl Fetched {
    /// Reads a group. Damaged samples are skipped if the options ask for it.
    pub(crate) fn read(job: &ExportJob<'_>, group: ReadGroup) -> Result<Self, ExportError> {
        match group {
            ReadGroup::Held(ordinals) => Self::held(job, &ordinals),
            ReadGroup::Streamed { ordinal, payload_len } => {
                let whole = job.options.on_damage == OnDamage::Fail || is_whole(job, ordinal)?;
                let facts = if whole { vec![facts_of(job, ordinal, payload_len)?] } else { Vec::new() };
                Ok(Self { facts, batches: Vec::new() })
            }
        }
    }

    fn held(job: &ExportJob<'_>, ordinals: &[u64]) -> Result<Self, ExportError> {
        let batches = match job.reader.get_batch(ordinals) {
            Ok(batch) => vec![batch],
            Err(error) if job.options.on_damage == OnDamage::Fail => return Err(error.into()),
            // One of them is damaged: reading each on its own shows which.
            Err(_) => one_by_one(job, ordinals)?,
        };
        let samples = batches.iter().flat_map(|batch| batch.ordinals().iter().zip(batch.payloads()));
        let facts = samples.map(|(ordinal, payload)| facts_of(job, *ordinal, payload.len() as u64));
        Ok(Self { facts: facts.collect::<Result<_, _>>()?, batches })
    }

    /// Passes every sample to `take`, in order, and counts them.
    pub(crate) fn each<'a>(
        &'a self,
        job: &'a ExportJob<'a>,
        mut take: impl FnMut(&mut ExportedSample<'a>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let mut payloads = self.batches.iter().flat_map(Batch::payloads);
        for facts in &self.facts {
            job.go_on()?;
            let payload = payloads.next().map_or_else(|| Payload::streamed(job, facts.ordinal), Payload::Held);
            let mut sample = ExportedSample { facts, payload };
            take(&mut sample)?;
            sample.payload.finish().map_err(ExportError::io("read", job.out))?;
        }
        let payload_bytes = self.facts.iter().map(Facts::written_len).sum();
        job.wrote(Progress { samples: self.facts.len() as u64, payload_bytes });
        Ok(())
    }
}

fn facts_of(job: &ExportJob<'_>, ordinal: u64, payload_len: u64) -> Result<Facts, ExportError> {
    let collection = job.collection();
    Ok(Facts {
        ordinal,
        key: collection.key(ordinal)?,
        attributes: job.columns().attributes(collection, ordinal)?,
        payload_len,
        fields: job.columns().fields(collection, ordinal, payload_len)?,
    })
}

fn one_by_one(job: &ExportJob<'_>, ordinals: &[u64]) -> Result<Vec<Batch>, ExportError> {
    let mut batches = Vec::with_capacity(ordinals.len());
    for ordinal in ordinals {
        job.go_on()?;
        match job.reader.get_batch(&[*ordinal]) {
            Ok(batch) => batches.push(batch),
            Err(error) => job.skip(*ordinal, error)?,
        }
    }
    Ok(batches)
}

/// Whether a long sample is undamaged. Written bytes of a damaged one could not be taken back, so it is read twice.
fn is_whole(job: &ExportJob<'_>, ordinal: u64) -> Result<bool, ExportError> {
    let mut payload = Payload::streamed(job, ordinal);
    let read = payload.copy(&(0..0), &mut io::sink()).and_then(|()| payload.finish());
    let error = match read {
        Ok(()) => return Ok(true),
        Err(error) => ExportError::io("read", job.out)(error),
    };
    match error {
        ExportError::Read(error @ (ReadError::Unreadable { .. } | ReadError::Store(_))) => {
            job.skip(ordinal, error).map(|()| false)
        }
        other => Err(other),
    }
}
