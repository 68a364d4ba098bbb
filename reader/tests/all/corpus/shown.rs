//! Keys, attributes and fields as `expected.json` has them.

use grainstore_format::AttributeValue;
use grainstore_reader::Sample;
use serde_json::{Map, Value, json};

/// The bytes of a key: hexadecimal digits, or a byte and how often it is repeated.
pub(super) fn key(shown: &Value) -> Option<Vec<u8>> {
    match shown {
        Value::Null => None,
        Value::Array(repeated) => {
            let byte = from_hex(repeated[0].as_str().unwrap());
            Some(byte.repeat(usize::try_from(repeated[1].as_u64().unwrap()).unwrap()))
        }
        digits => Some(from_hex(digits.as_str().unwrap())),
    }
}

pub(super) fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Integers, bools and categories as JSON has them, floats as the digits of their bits.
pub(super) fn attribute(value: Option<&AttributeValue>) -> Value {
    let Some(value) = value else { return Value::Null };
    match value {
        AttributeValue::Bool(value) => json!(value),
        AttributeValue::Int(value) | AttributeValue::Timestamp(value) => json!(value),
        AttributeValue::Uint(value) => json!(value),
        AttributeValue::Float16(value) => json!({ "bits": format!("{:04x}", value.to_bits()) }),
        AttributeValue::Bfloat16(value) => json!({ "bits": format!("{:04x}", value.to_bits()) }),
        AttributeValue::Float32(value) => json!({ "bits": format!("{:08x}", value.to_bits()) }),
        AttributeValue::Float64(value) => json!({ "bits": format!("{:016x}", value.to_bits()) }),
        AttributeValue::Category(text) => json!(&**text),
        AttributeValue::Opaque(bytes) => json!({ "hex": hex(bytes) }),
    }
}

/// All fields of a sample: short ones as their bytes, others as length and XXH64.
pub(super) fn fields<'a>(sample: &Sample, names: impl Iterator<Item = &'a str>) -> Value {
    let parts = names.map(|name| (name.to_owned(), field(sample.field(name).unwrap())));
    Value::Object(parts.collect::<Map<_, _>>())
}

fn field(part: Option<&[u8]>) -> Value {
    match part {
        None => Value::Null,
        Some(bytes) if bytes.len() <= 32 => json!({ "hex": hex(bytes) }),
        Some(bytes) => {
            let hash = xxhash_rust::xxh64::xxh64(bytes, 0);
            json!({ "len": bytes.len(), "xxh64": format!("{hash:016x}") })
        }
    }
}
