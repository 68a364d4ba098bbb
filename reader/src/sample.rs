//! A sample read by itself.

use std::ops::Range;

use grainstore_store::Collection;

use crate::{ReadError, fields};

/// One sample: its payload, checked and decoded, and where its fields lie in it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its number in the dataset.
    pub ordinal: u64,
    /// The raw payload.
    pub payload: Vec<u8>,
    fields: Fields,
    dataset: Collection,
}

/// Where the fields lie.
#[derive(Clone, Debug)]
enum Fields {
    /// The only one is the payload: nothing to look up, nothing to allocate.
    Payload([Option<Range<u64>>; 1]),
    /// As the index says.
    Listed(Vec<Option<Range<u64>>>),
}

impl Sample {
    pub(crate) fn new(dataset: &Collection, ordinal: u64, payload: Vec<u8>) -> Result<Self, ReadError> {
        let payload_len = payload.len() as u64;
        let fields = match dataset.has_field_columns() {
            false => Fields::Payload([Some(0..payload_len)]),
            true => Fields::Listed(dataset.fields(ordinal, payload_len)?),
        };
        Ok(Self { ordinal, payload, fields, dataset: dataset.clone() })
    }

    /// Where each field lies in the payload, in the schema's order; `None` where the sample lacks it.
    #[must_use]
    pub fn fields(&self) -> &[Option<Range<u64>>] {
        match &self.fields {
            Fields::Payload(field) => field,
            Fields::Listed(fields) => fields,
        }
    }

    /// The bytes of a field; `None` where the sample lacks it.
    ///
    /// # Errors
    /// Where the schema has no field of this name.
    pub fn field(&self, name: &str) -> Result<Option<&[u8]>, ReadError> {
        let schema = self.dataset.schema();
        fields::cut(schema, self.fields(), fields::number_of(schema, name)?, &self.payload)
    }
}
