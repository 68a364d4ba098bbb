//! A batch: the payloads of several samples in one piece of memory.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use grainstore_store::Collection;

use crate::engine::{Buffer, BufferPool};
use crate::on_damage::SkippedSample;
use crate::{ReadError, fields};

/// Several samples. Their payloads are in one piece of memory; a sample that was requested twice is stored there once.
/// Cloning it copies no payload.
#[derive(Clone)]
pub struct Batch {
    pub(crate) dataset: Collection,
    pub(crate) memory: Arc<BatchMemory>,
    pub(crate) ordinals: Vec<u64>,
    pub(crate) views: Vec<Range<usize>>,
    /// Empty where it belongs to no epoch.
    pub(crate) positions: Vec<u64>,
    /// Empty where no sample has one.
    pub(crate) repeats: Vec<u64>,
    pub(crate) padded_count: usize,
    pub(crate) skipped: Arc<[SkippedSample]>,
}

/// What a batch of an epoch has of its samples, in order. The lists are equally long, except that there may be no
/// repeats.
#[derive(Default)]
pub(crate) struct SampleLists {
    pub(crate) ordinals: Vec<u64>,
    pub(crate) positions: Vec<u64>,
    pub(crate) views: Vec<Range<usize>>,
    pub(crate) repeats: Vec<u64>,
}

/// The memory of a batch. Another batch uses it afterwards.
pub(crate) struct BatchMemory {
    buffer: Buffer,
    len: usize,
    pool: Arc<BufferPool>,
}

impl BatchMemory {
    /// The first `len` bytes of the buffer, which goes to the pool when dropped.
    pub(crate) fn new(buffer: Buffer, len: usize, pool: Arc<BufferPool>) -> Self {
        Self { buffer, len, pool }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer.as_slice()[..self.len]
    }
}

impl Drop for BatchMemory {
    fn drop(&mut self) {
        self.pool.give(std::mem::replace(&mut self.buffer, Buffer::with_capacity(0)));
    }
}

impl Batch {
    /// The batch of some samples of an epoch of `epoch_len` positions.
    pub(crate) fn of_epoch(
        dataset: &Collection,
        memory: Arc<BatchMemory>,
        samples: SampleLists,
        epoch_len: u64,
        skipped: Arc<[SkippedSample]>,
    ) -> Self {
        let SampleLists { ordinals, positions, views, repeats } = samples;
        let padded_count = positions.len() - positions.partition_point(|&position| position < epoch_len);
        Self { dataset: dataset.clone(), memory, ordinals, views, positions, repeats, padded_count, skipped }
    }

    /// The batch with only the samples at `places`, which ascend; it shares the memory.
    ///
    /// # Panics
    /// If a place is not below [`len`](Self::len).
    #[must_use]
    pub fn keep(&self, places: &[usize]) -> Self {
        let first_padded = self.len() - self.padded_count;
        Self {
            ordinals: places.iter().map(|&place| self.ordinals[place]).collect(),
            views: places.iter().map(|&place| self.views[place].clone()).collect(),
            positions: places.iter().filter_map(|&place| self.positions.get(place).copied()).collect(),
            repeats: places.iter().filter_map(|&place| self.repeats.get(place).copied()).collect(),
            padded_count: places.iter().filter(|&&place| place >= first_padded).count(),
            ..self.clone()
        }
    }

    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ordinals.len()
    }

    /// Whether it has no samples: none was requested, or the epoch had none left for this rank.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ordinals.is_empty()
    }

    /// The samples' ordinals, in the order of the request or of the epoch.
    #[must_use]
    pub fn ordinals(&self) -> &[u64] {
        &self.ordinals
    }

    /// The samples' positions in the epoch, ascending; empty where the batch belongs to no epoch.
    #[must_use]
    pub fn positions(&self) -> &[u64] {
        &self.positions
    }

    /// For each sample, how often the epoch's subset has the same one before it, counted by index: with the ordinal, it
    /// names the visit. Empty where no sample of the epoch is there twice, and where the batch belongs to no epoch.
    #[must_use]
    pub fn repeats(&self) -> &[u64] {
        &self.repeats
    }

    /// Samples that are missing from the batch, since they cannot be read or are damaged and the epoch continues
    /// without them ([`OnDamage::Skip`](crate::OnDamage::Skip)).
    #[must_use]
    pub fn skipped(&self) -> &[SkippedSample] {
        &self.skipped
    }

    /// Number of samples at the end of the batch that are padding: they repeat samples of the epoch's start, and their
    /// positions are past its end.
    #[must_use]
    pub fn padded_count(&self) -> usize {
        self.padded_count
    }

    /// The raw payload of sample `i` of the batch.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[must_use]
    pub fn payload(&self, i: usize) -> &[u8] {
        &self.memory.bytes()[self.view(i)]
    }

    /// The raw payloads, one after the other.
    pub fn payloads(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        let memory = self.memory.bytes();
        self.views.iter().map(|view| &memory[view.clone()])
    }

    /// Raw bytes of all payloads; a sample that was requested twice counts twice.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.views.iter().map(|view| view.len() as u64).sum()
    }

    /// The memory that contains all payloads. Payloads that were copied are at its start, back to back in an epoch's
    /// order; those that the device put there itself begin anywhere. Bytes between payloads are arbitrary.
    #[must_use]
    pub fn block(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// Where in [`block`](Self::block) the payload of sample `i` is.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[must_use]
    pub fn view(&self, i: usize) -> Range<usize> {
        self.views[i].clone()
    }

    /// The bytes of a field of sample `i`, by the field's number in the schema; `None` where the sample does not have
    /// it.
    ///
    /// # Errors
    /// Where there is no such field, or the index of fields cannot be read.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    pub fn field(&self, i: usize, number: usize) -> Result<Option<&[u8]>, ReadError> {
        let payload = self.payload(i);
        let ranges = self.dataset.fields(self.ordinals[i], payload.len() as u64)?;
        fields::cut(self.dataset.schema(), &ranges, number, payload)
    }

    /// The bytes of a field of sample `i`, by the field's name; `None` where the sample does not have it.
    ///
    /// # Errors
    /// As [`field`](Self::field).
    ///
    /// # Panics
    /// As [`field`](Self::field).
    pub fn field_named(&self, i: usize, name: &str) -> Result<Option<&[u8]>, ReadError> {
        self.field(i, fields::number_of(self.dataset.schema(), name)?)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("ordinals", &self.ordinals)
            .field("first_position", &self.positions.first())
            .field("block_len", &self.memory.len)
            .finish_non_exhaustive()
    }
}
