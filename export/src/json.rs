//! Attributes as JSON.

use std::io;

use grainstore_format::{Attribute, AttributeValue, escape_bytes};
use serde_json::{Number, Value};

use crate::ExportError;
use crate::error::io_bug;
use crate::index_pass::Indexed;

/// The JSON value of an attribute. A float keeps all its digits, so that reading it gives the same float; a timestamp is
/// its nanoseconds, bytes of an unknown type are hexadecimal. `None` for infinite floats and NaN, which JSON does not
/// have.
pub(crate) fn value_of(value: &AttributeValue) -> Option<Value> {
    Some(match value {
        AttributeValue::Bool(value) => (*value).into(),
        AttributeValue::Int(value) | AttributeValue::Timestamp(value) => (*value).into(),
        AttributeValue::Uint(value) => (*value).into(),
        AttributeValue::Float16(value) => Number::from_f64(value.to_f64())?.into(),
        AttributeValue::Bfloat16(value) => Number::from_f64(value.to_f64())?.into(),
        AttributeValue::Float32(value) => Number::from_f64((*value).into())?.into(),
        AttributeValue::Float64(value) => Number::from_f64(*value)?.into(),
        AttributeValue::Category(text) => text.as_ref().into(),
        AttributeValue::Opaque(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    })
}

/// The JSON value of an attribute that [`check`] has accepted.
pub(crate) fn accepted(value: &AttributeValue) -> io::Result<Value> {
    value_of(value).ok_or_else(|| io_bug("JSON cannot hold an attribute that was checked"))
}

/// Fails if JSON cannot hold an attribute of a sample.
pub(crate) fn check(attributes: &[Attribute], sample: &Indexed) -> Result<(), ExportError> {
    for (attribute, value) in attributes.iter().zip(&sample.attributes) {
        if let Some(value) = value
            && value_of(value).is_none()
        {
            let name = escape_bytes(attribute.name.as_bytes());
            return Err(sample.refused(format!("its \"{name}\" is {value}, JSON has finite numbers only")));
        }
    }
    Ok(())
}

/// An object of these members, in their order, on one line.
pub(crate) fn object<'a>(members: impl Iterator<Item = (&'a str, Value)>) -> String {
    let members: Vec<String> = members.map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
    format!("{{{}}}", members.join(","))
}
