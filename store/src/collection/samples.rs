//! Queries about single samples, which their members answer.

use std::ops::Range;

use grainstore_format::AttributeValue;

use super::{Collection, OneOrSeveral};
use crate::{Dataset, Location, PayloadError, StoreError};

impl Collection {
    /// Where sample `ordinal` is stored. The segment is numbered among those of all members.
    ///
    /// # Errors
    /// As [`Dataset::locate`] and [`Collection::member`].
    #[inline]
    pub fn locate(&self, ordinal: u64) -> Result<Location, StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.locate(ordinal),
            OneOrSeveral::Several(several) => several.locate(ordinal),
        }
    }

    /// [`Collection::locate`] of many samples: [`Dataset::locate_batch`].
    ///
    /// # Errors
    /// As [`Collection::locate`], for the first that fails; `out` then holds those before it.
    pub fn locate_batch(&self, ordinals: &[u64], out: &mut Vec<Location>) -> Result<(), StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.locate_batch(ordinals, out),
            OneOrSeveral::Several(several) => several.locate_batch(ordinals, out),
        }
    }

    /// The key of sample `ordinal`; `None` if there are no keys.
    ///
    /// # Errors
    /// As [`Dataset::key`] and [`Collection::member`].
    pub fn key(&self, ordinal: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.query_member(ordinal, |member, ordinal| member.key(ordinal))
    }

    /// The ordinal of the first sample with this key: keys are unique in each member only.
    ///
    /// # Errors
    /// As [`Dataset::find`] and [`Collection::member`].
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.find(key),
            OneOrSeveral::Several(several) => several.find(key),
        }
    }

    /// [`Collection::find`] for each of `keys`, in their order.
    ///
    /// # Errors
    /// As [`Collection::find`], for the first error met.
    pub fn find_batch(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<u64>>, StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.find_batch(keys),
            OneOrSeveral::Several(several) => several.find_batch(keys),
        }
    }

    /// The attributes of sample `ordinal`, in the order of the schema; none if it has none.
    ///
    /// # Errors
    /// As [`Dataset::attributes`] and [`Collection::member`].
    pub fn attributes(&self, ordinal: u64) -> Result<Vec<Option<AttributeValue>>, StoreError> {
        self.query_member(ordinal, |member, ordinal| member.attributes(ordinal))
    }

    /// [`Dataset::cached_location`]; none of a member that is not open.
    pub fn cached_location(&self, ordinal: u64) -> Option<Location> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.cached_location(ordinal),
            OneOrSeveral::Several(several) => several.cached_location(ordinal),
        }
    }

    /// [`Dataset::cached_attribute`]; none of a member that is not open.
    pub fn cached_attribute(&self, place: usize, ordinal: u64) -> Option<Option<AttributeValue>> {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.cached_attribute(place, ordinal),
            OneOrSeveral::Several(several) => several.cached_attribute(place, ordinal),
        }
    }

    /// The byte ranges of the fields of sample `ordinal` in its raw payload of `payload_len` bytes:
    /// [`Dataset::fields`].
    ///
    /// # Errors
    /// As [`Dataset::fields`] and [`Collection::member`].
    pub fn fields(&self, ordinal: u64, payload_len: u64) -> Result<Vec<Option<Range<u64>>>, StoreError> {
        self.query_member(ordinal, |member, ordinal| member.fields(ordinal, payload_len))
    }

    /// The error for a sample whose stored bytes disagree with the index.
    pub fn payload_error(&self, ordinal: u64, location: &Location, error: &PayloadError) -> StoreError {
        match &self.0 {
            OneOrSeveral::One(dataset) => dataset.payload_error(ordinal, location, error),
            OneOrSeveral::Several(several) => several.payload_error(ordinal, location, error),
        }
    }

    /// Calls `query` with the member that has a sample, and the sample's ordinal in it.
    fn query_member<T>(
        &self,
        ordinal: u64,
        query: impl FnOnce(&Dataset, u64) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match &self.0 {
            OneOrSeveral::One(dataset) => query(dataset, ordinal),
            OneOrSeveral::Several(several) => several.query_member(ordinal, query),
        }
    }
}
