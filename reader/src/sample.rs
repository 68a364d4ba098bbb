//! A sample that was read alone.

use std::ops::Range;

use grainstore_store::Collection;

use crate::{ReadError, fields};

/// One sample: its checked and decoded payload, and where its fields are in it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its number in the dataset.
    pub ordinal: u64,
    /// The raw payload.
    pub payload: Vec<u8>,
    fields: FieldRanges,
    dataset: Collection,
}

/// Where the fields are in the payload.
#[derive(Clone, Debug)]
enum FieldRanges {
    /// The only field is the payload: nothing to look up, nothing to allocate.
    Payload([Option<Range<u64>>; 1]),
    /// The ranges from the index.
    Listed(Vec<Option<Range<u64>>>),
}

impl Sample {
    pub(crate) fn new(dataset: &Collection, ordinal: u64, payload: Vec<u8>) -> Result<Self, ReadError> {
        let payload_len = payload.len() as u64;
        let fields = if dataset.has_field_columns() {
            FieldRanges::Listed(dataset.fields(ordinal, payload_len)?)
        } else {
            FieldRanges::Payload([Some(0..payload_len)])
        };
        Ok(Self { ordinal, payload, fields, dataset: dataset.clone() })
    }

    /// The range of each field in the payload, in the schema's order; `None` if the sample lacks it.
    #[must_use]
    pub fn fields(&self) -> &[Option<Range<u64>>] {
        match &self.fields {
            FieldRanges::Payload(field) => field,
            FieldRanges::Listed(fields) => fields,
        }
    }

    /// The bytes of a field; `None` if the sample lacks it.
    ///
    /// # Errors
    /// If the schema has no field of this name.
    pub fn field(&self, name: &str) -> Result<Option<&[u8]>, ReadError> {
        let schema = self.dataset.schema();
        fields::cut(schema, self.fields(), fields::number_of(schema, name)?, &self.payload)
    }
}
