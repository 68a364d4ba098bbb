//! Fields of a payload, found by name or by number.

use std::ops::Range;

use grainstore_format::{Schema, to_usize};

use crate::ReadError;

/// A field's index in the schema.
pub(crate) fn number_of(schema: &Schema, name: &str) -> Result<usize, ReadError> {
    schema.field(name).ok_or_else(|| no_field(schema, name.to_owned()))
}

/// The bytes of a field in its payload; `None` if the sample lacks it.
pub(crate) fn cut<'a>(
    schema: &Schema,
    ranges: &[Option<Range<u64>>],
    number: usize,
    payload: &'a [u8],
) -> Result<Option<&'a [u8]>, ReadError> {
    let range = ranges.get(number).ok_or_else(|| no_field(schema, number.to_string()))?;
    let Some(range) = range else { return Ok(None) };
    let bytes = payload.get(to_usize(range.start)..to_usize(range.end));
    // The store has checked that the range is inside the payload.
    bytes.map(Some).ok_or_else(|| ReadError::bug("a field ends past its payload"))
}

fn no_field(schema: &Schema, name: String) -> ReadError {
    ReadError::NoSuchField { name, known: schema.fields().iter().map(|field| field.name.clone()).collect() }
}
