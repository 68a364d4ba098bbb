//! `grainstore ls`: the samples of a dataset, one per line, from its index alone.

use std::path::PathBuf;

use grainstore_format::{AttributeValue, escape_bytes};
use grainstore_store::Dataset;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::external::External;
use crate::printer::Printer;
use crate::time::shown_time;
use crate::{Exit, interrupt};

/// List the samples, one per line: ordinal, key, payload length in bytes, attributes
///
/// The columns are separated by tabs; attributes are in the order of the schema, and an attribute that a sample lacks
/// is empty; a timestamp is a date and time in UTC, and a value of a type that this version does not know is
/// hexadecimal. Control characters, quotes, backslashes and bytes that are not UTF-8 are escaped in keys
/// and categories.
#[derive(clap::Args)]
pub(crate) struct LsArgs {
    /// Dataset directory, or one segment
    #[arg(value_name = "DATASET")]
    path: PathBuf,
    /// List the first N samples only
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print one JSON object per line instead, with ordinal, key, payload_len, stored_len and attributes
    ///
    /// Keys are not escaped in JSON. A key that is not UTF-8 is in `key_hex` instead of `key`; an attribute value that
    /// JSON cannot represent as a number is the text "NaN", "inf" or "-inf"; a timestamp is nanoseconds since 1970.
    #[arg(long)]
    pub(super) json: bool,
}

/// Number of samples between two checks for Ctrl-C.
const STRIDE: u64 = 1024;

#[derive(Serialize)]
struct SampleRow {
    ordinal: u64,
    #[serde(flatten)]
    key: Map<String, Value>,
    payload_len: u64,
    stored_len: u64,
    attributes: Map<String, Value>,
}

impl LsArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the dataset cannot be opened or its index is damaged.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let dataset = external.open(&self.path)?;
        let count = dataset.sample_count().min(self.limit.unwrap_or(u64::MAX));
        for ordinal in 0..count {
            if ordinal % STRIDE == 0 && interrupt::requested() {
                return Ok(Exit::Interrupted);
            }
            if self.json {
                printer.json_line(&row(&dataset, ordinal)?)?;
            } else {
                printer.line(line(&dataset, ordinal)?)?;
            }
        }
        Ok(Exit::Done)
    }
}

fn line(dataset: &Dataset, ordinal: u64) -> anyhow::Result<String> {
    let key = escape_bytes(&dataset.key(ordinal)?.unwrap_or_default()); // an empty column in a dataset without keys
    let mut line = format!("{ordinal}\t{key}\t{}", dataset.locate(ordinal)?.raw_len());
    for value in dataset.attributes(ordinal)? {
        line.push('\t');
        line.push_str(&value.as_ref().map_or_else(String::new, shown));
    }
    Ok(line)
}

fn row(dataset: &Dataset, ordinal: u64) -> anyhow::Result<SampleRow> {
    let location = dataset.locate(ordinal)?;
    let names = dataset.schema().attributes().iter().map(|attribute| attribute.name.clone());
    let values = dataset.attributes(ordinal)?.into_iter().map(|value| value.as_ref().map_or(Value::Null, json));
    Ok(SampleRow {
        ordinal,
        key: dataset.key(ordinal)?.map(key_members).unwrap_or_default(),
        payload_len: location.raw_len(),
        stored_len: location.stored_len,
        attributes: names.zip(values).collect(),
    })
}

/// The key as `key`, or as `key_hex` if it is not valid UTF-8.
pub(super) fn key_members(key: Vec<u8>) -> Map<String, Value> {
    let (name, text) = match String::from_utf8(key) {
        Ok(text) => ("key", text),
        Err(error) => ("key_hex", hex(error.as_bytes())),
    };
    Map::from_iter([(name.to_owned(), Value::String(text))])
}

fn shown(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Bool(value) => value.to_string(),
        AttributeValue::Int(value) => value.to_string(),
        AttributeValue::Uint(value) => value.to_string(),
        AttributeValue::Float16(value) => value.to_string(),
        AttributeValue::Bfloat16(value) => value.to_string(),
        AttributeValue::Float32(value) => value.to_string(),
        AttributeValue::Float64(value) => value.to_string(),
        AttributeValue::Timestamp(ns) => shown_time(*ns),
        AttributeValue::Category(text) => escape_bytes(text.as_bytes()),
        AttributeValue::Opaque(bytes) => hex(bytes),
    }
}

fn json(value: &AttributeValue) -> Value {
    let number = match value {
        AttributeValue::Bool(value) => return Value::Bool(*value),
        AttributeValue::Int(value) | AttributeValue::Timestamp(value) => return (*value).into(),
        AttributeValue::Uint(value) => return (*value).into(),
        AttributeValue::Category(text) => return text.as_ref().into(),
        AttributeValue::Opaque(bytes) => return hex(bytes).into(),
        AttributeValue::Float16(number) => number.to_f64(),
        AttributeValue::Bfloat16(number) => number.to_f64(),
        // Converted through its shortest text, so that 0.1 stays 0.1.
        AttributeValue::Float32(number) => number.to_string().parse().unwrap_or(f64::from(*number)),
        AttributeValue::Float64(number) => *number,
    };
    serde_json::Number::from_f64(number).map_or_else(|| Value::String(shown(value)), Value::Number)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_json_cannot_hold_is_shown_in_hex() {
        assert_eq!(Value::Object(key_members(b"a\tb".to_vec())), serde_json::json!({ "key": "a\tb" }));
        assert_eq!(Value::Object(key_members(b"\xff\x01".to_vec())), serde_json::json!({ "key_hex": "ff01" }));
    }

    #[test]
    fn numbers_keep_their_value_in_json() {
        assert_eq!(json(&AttributeValue::Float32(0.1)), serde_json::json!(0.1));
        assert_eq!(json(&AttributeValue::Uint(u64::MAX)), serde_json::json!(u64::MAX));
        assert_eq!(json(&AttributeValue::Int(i64::MIN)), serde_json::json!(i64::MIN));
        assert_eq!(json(&AttributeValue::Float64(f64::NAN)), serde_json::json!("NaN"));
        assert_eq!(json(&AttributeValue::Float64(f64::NEG_INFINITY)), serde_json::json!("-inf"));
        assert_eq!(json(&AttributeValue::Bool(true)), serde_json::json!(true));
        assert_eq!(json(&AttributeValue::Timestamp(-1)), serde_json::json!(-1));
        assert_eq!(json(&AttributeValue::Category("a\tb".into())), serde_json::json!("a\tb"));
        assert_eq!(json(&AttributeValue::Opaque(vec![0, 255].into())), serde_json::json!("00ff"));
        assert_eq!(shown(&AttributeValue::Category("a\tb".into())), "a\\tb");
    }
}
