//! A batch: the payloads of several samples in one block of memory.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use grainstore_store::Dataset;

use crate::engine::{Buffer, BufferPool};
use crate::{ReadError, fields};

/// Several samples. Their payloads lie in one block; a sample that was asked for twice lies there once. Cloning it
/// copies no payload.
#[derive(Clone)]
pub struct Batch {
    pub(crate) dataset: Dataset,
    pub(crate) block: Arc<Block>,
    pub(crate) ordinals: Vec<u64>,
    pub(crate) views: Vec<Range<usize>>,
    pub(crate) first_position: Option<u64>,
}

/// The memory of a batch. It serves another one afterwards.
pub(crate) struct Block {
    buffer: Buffer,
    len: usize,
    pool: Arc<BufferPool>,
}

impl Block {
    /// The first `len` bytes of the buffer, which goes to the pool in the end.
    pub(crate) fn new(buffer: Buffer, len: usize, pool: Arc<BufferPool>) -> Self {
        Self { buffer, len, pool }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer.as_slice()[..self.len]
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.pool.give(std::mem::replace(&mut self.buffer, Buffer::with_capacity(0)));
    }
}

impl Batch {
    /// Samples of the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ordinals.len()
    }

    /// Whether it has no samples: only where none was asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ordinals.is_empty()
    }

    /// The samples' ordinals, in the order asked or of the epoch.
    #[must_use]
    pub fn ordinals(&self) -> &[u64] {
        &self.ordinals
    }

    /// The position in the epoch of the first sample; the others follow. `None` for a batch of no epoch.
    #[must_use]
    pub fn first_position(&self) -> Option<u64> {
        self.first_position
    }

    /// The raw payload of sample `i` of the batch.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[must_use]
    pub fn payload(&self, i: usize) -> &[u8] {
        &self.block.bytes()[self.view(i)]
    }

    /// The raw payloads, one after the other.
    pub fn payloads(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        let block = self.block.bytes();
        self.views.iter().map(|view| &block[view.clone()])
    }

    /// Raw bytes of all payloads; a sample that was asked for twice counts twice.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.views.iter().map(|view| view.len() as u64).sum()
    }

    /// The bytes that hold all payloads. Payloads that were copied lie at its start, back to back in an epoch's
    /// order; those that the device put there itself begin anywhere. What lies between payloads is arbitrary.
    #[must_use]
    pub fn block(&self) -> &[u8] {
        self.block.bytes()
    }

    /// Where in the block the payload of sample `i` lies.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[must_use]
    pub fn view(&self, i: usize) -> Range<usize> {
        self.views[i].clone()
    }

    /// The bytes of a field of sample `i`, by the field's place in the schema; `None` where the sample lacks it.
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

    /// The bytes of a field of sample `i`, by the field's name; `None` where the sample lacks it.
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
            .field("first_position", &self.first_position)
            .field("block_len", &self.block.len)
            .finish_non_exhaustive()
    }
}
