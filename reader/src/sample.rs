//! A sample read by itself.

use std::ops::Range;

use grainstore_store::Dataset;

use crate::{ReadError, fields};

/// One sample: its payload, checked and decoded, and where its fields lie in it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its number in the dataset.
    pub ordinal: u64,
    /// The raw payload.
    pub payload: Vec<u8>,
    fields: Vec<Option<Range<u64>>>,
    dataset: Dataset,
}

impl Sample {
    pub(crate) fn new(dataset: &Dataset, ordinal: u64, payload: Vec<u8>) -> Result<Self, ReadError> {
        let fields = dataset.fields(ordinal, payload.len() as u64)?;
        Ok(Self { ordinal, payload, fields, dataset: dataset.clone() })
    }

    /// Where each field lies in the payload, in the schema's order; `None` where the sample lacks it.
    #[must_use]
    pub fn fields(&self) -> &[Option<Range<u64>>] {
        &self.fields
    }

    /// The bytes of a field; `None` where the sample lacks it.
    ///
    /// # Errors
    /// Where the schema has no field of this name.
    pub fn field(&self, name: &str) -> Result<Option<&[u8]>, ReadError> {
        let schema = self.dataset.schema();
        fields::cut(schema, &self.fields, fields::number_of(schema, name)?, &self.payload)
    }
}
