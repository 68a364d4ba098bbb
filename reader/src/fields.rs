//! Fields of a payload: which bytes of it a name or a number stands for.

use std::ops::Range;

use grainstore_format::{Schema, to_usize};

use crate::ReadError;

/// A field's place in the schema.
pub(crate) fn number_of(schema: &Schema, name: &str) -> Result<usize, ReadError> {
    schema.field(name).ok_or_else(|| no_field(schema, name.to_owned()))
}

/// The bytes of a field in its payload; `None` where the sample lacks it.
pub(crate) fn cut<'a>(
    schema: &Schema,
    ranges: &[Option<Range<u64>>],
    number: usize,
    payload: &'a [u8],
) -> Result<Option<&'a [u8]>, ReadError> {
    let range = ranges.get(number).ok_or_else(|| no_field(schema, number.to_string()))?;
    // The store has checked that the range lies inside the payload.
    Ok(range.as_ref().map(|range| payload.get(to_usize(range.start)..to_usize(range.end)).unwrap_or_default()))
}

fn no_field(schema: &Schema, name: String) -> ReadError {
    ReadError::NoSuchField { name, known: schema.fields().iter().map(|field| field.name.clone()).collect() }
}
