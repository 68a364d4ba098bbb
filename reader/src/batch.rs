//! A batch: the payloads of several samples in one block of memory, and the builder that checks what goes into it.

use std::fmt;
use std::ops::Range;

use grainstore_format::to_usize;
use grainstore_store::{Dataset, Location, check_and_decode};

use crate::{ReadError, fields};

/// Several samples. Their payloads lie in one block; a sample that was asked for twice lies there once.
#[derive(Clone)]
pub struct Batch {
    dataset: Dataset,
    block: Vec<u8>,
    ordinals: Vec<u64>,
    views: Vec<Range<usize>>,
    first_position: Option<u64>,
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
        &self.block[self.view(i)]
    }

    /// The raw payloads, one after the other.
    pub fn payloads(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        self.views.iter().map(|view| &self.block[view.clone()])
    }

    /// Raw bytes of all payloads; a sample that was asked for twice counts twice.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.views.iter().map(|view| view.len() as u64).sum()
    }

    /// The bytes that hold all payloads: in the order of an epoch back to back, else in any order.
    #[must_use]
    pub fn block(&self) -> &[u8] {
        &self.block
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
            .field("block_len", &self.block.len())
            .finish_non_exhaustive()
    }
}

/// Takes stored bytes, and lets into the block only what has passed its checksum and been decoded.
pub(crate) struct BatchBuilder<'a> {
    dataset: &'a Dataset,
    block: Vec<u8>,
}

impl<'a> BatchBuilder<'a> {
    /// With room for the raw payloads of all `locations`, so that no payload is moved once it is there.
    pub(crate) fn with_room_for<'l>(
        dataset: &'a Dataset,
        locations: impl Iterator<Item = &'l Location>,
    ) -> Result<Self, ReadError> {
        // Raw lengths are bounded by stored ones, and those by the files' lengths.
        let len = locations.map(Location::raw_len).fold(0, u64::saturating_add);
        let mut block = Vec::new();
        block.try_reserve_exact(to_usize(len)).map_err(|_| ReadError::NoMemory { len })?;
        Ok(Self { dataset, block })
    }

    /// Checks and decodes the stored bytes of a sample, and says where its payload lies in the block.
    pub(crate) fn push(&mut self, ordinal: u64, location: &Location, stored: &[u8]) -> Result<Range<usize>, ReadError> {
        let start = self.block.len();
        check_and_decode(location, stored, &mut self.block)
            .map_err(|error| ReadError::damaged(self.dataset, ordinal, location, &error))?;
        Ok(start..self.block.len())
    }

    /// The payload of the only sample.
    pub(crate) fn into_payload(self) -> Vec<u8> {
        self.block
    }

    /// A batch of these samples; the views are those that `push` returned for them.
    pub(crate) fn finish(self, ordinals: Vec<u64>, views: Vec<Range<usize>>, first_position: Option<u64>) -> Batch {
        debug_assert_eq!(ordinals.len(), views.len());
        Batch { dataset: self.dataset.clone(), block: self.block, ordinals, views, first_position }
    }
}
