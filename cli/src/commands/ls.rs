//! `grainstore ls`: the samples of a dataset, one per line, from its index alone.

use std::path::PathBuf;

use anyhow::anyhow;
use grainstore_format::{AttributeValue, escape_bytes, shown_names};
use grainstore_reader::{Expression, Subset};
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
    /// Only samples that match this, such as 'label in 3, 7..9 and key_hash < 0.9'
    #[arg(long, value_name = "EXPRESSION")]
    subset: Option<Expression>,
    /// Print these columns only, in this order: ordinal, key, payload_len, stored_len, or names of attributes
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Print the names of the columns first
    #[arg(long, conflicts_with = "json")]
    header: bool,
    /// List the first N samples only, of the subset if there is one
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

/// A column of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListColumn {
    Ordinal,
    Key,
    PayloadLen,
    StoredLen,
    /// The attribute with this number in the schema.
    Attribute(usize),
}

/// The columns that are not attributes.
const BUILT_IN: [(&str, ListColumn); 4] = [
    ("ordinal", ListColumn::Ordinal),
    ("key", ListColumn::Key),
    ("payload_len", ListColumn::PayloadLen),
    ("stored_len", ListColumn::StoredLen),
];

#[derive(Serialize)]
struct SampleRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    ordinal: Option<u64>,
    #[serde(flatten)]
    key: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_len: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_len: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<Map<String, Value>>,
}

impl LsArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the dataset cannot be opened, its index is damaged, or it has no such column.
    pub(crate) fn run(&self, printer: &Printer, external: External) -> anyhow::Result<Exit> {
        let dataset = external.open(&self.path)?;
        let columns = self.chosen_columns(&dataset)?;
        let subset = self.subset.as_ref().map(|expression| expression.select(&dataset)).transpose()?;
        if self.header {
            let names: Vec<String> = columns.iter().map(|column| column.name(&dataset)).collect();
            printer.line(names.join("\t"))?;
        }
        let count = subset.as_ref().map_or(dataset.sample_count(), Subset::len).min(self.limit.unwrap_or(u64::MAX));
        for index in 0..count {
            if index % STRIDE == 0 && interrupt::requested() {
                return Ok(Exit::Interrupted);
            }
            let ordinal = subset.as_ref().map_or(index, |subset| subset.ordinal(index));
            if self.json {
                printer.json_line(&row(&dataset, ordinal, &columns)?)?;
            } else {
                printer.line(line(&dataset, ordinal, &columns)?)?;
            }
        }
        Ok(Exit::Done)
    }

    /// The columns that were asked for. By default the text has ordinal, key, payload length and all attributes, and
    /// JSON the stored length, too.
    fn chosen_columns(&self, dataset: &Dataset) -> anyhow::Result<Vec<ListColumn>> {
        let attributes = dataset.schema().attributes();
        let Some(names) = &self.columns else {
            let built_in = BUILT_IN.iter().map(|(_, column)| *column);
            let shown = built_in.filter(|column| self.json || *column != ListColumn::StoredLen);
            return Ok(shown.chain((0..attributes.len()).map(ListColumn::Attribute)).collect());
        };
        let find = |name: &String| {
            let built_in = BUILT_IN.iter().find(|(known, _)| known == name).map(|(_, column)| *column);
            let attribute = || attributes.iter().position(|attribute| attribute.name == *name);
            built_in.or_else(|| attribute().map(ListColumn::Attribute)).ok_or_else(|| {
                let known = BUILT_IN.iter().map(|(known, _)| *known);
                let known: Vec<String> =
                    known.map(str::to_owned).chain(attributes.iter().map(|found| found.name.clone())).collect();
                anyhow!("no column \"{}\" (there are: {})", escape_bytes(name.as_bytes()), shown_names(&known))
            })
        };
        names.iter().map(find).collect()
    }
}

impl ListColumn {
    fn name(self, dataset: &Dataset) -> String {
        match self {
            Self::Attribute(number) => {
                let name = dataset.schema().attributes().get(number).map_or("", |attribute| attribute.name.as_str());
                escape_bytes(name.as_bytes())
            }
            _ => BUILT_IN.iter().find(|(_, column)| *column == self).map_or("", |(name, _)| name).to_owned(),
        }
    }
}

fn line(dataset: &Dataset, ordinal: u64, columns: &[ListColumn]) -> anyhow::Result<String> {
    let location = dataset.locate(ordinal)?;
    let attributes = dataset.attributes(ordinal)?;
    let mut line = String::new();
    for (number, column) in columns.iter().enumerate() {
        if number > 0 {
            line.push('\t');
        }
        match column {
            ListColumn::Ordinal => line.push_str(&ordinal.to_string()),
            // An empty column in a dataset without keys.
            ListColumn::Key => line.push_str(&escape_bytes(&dataset.key(ordinal)?.unwrap_or_default())),
            ListColumn::PayloadLen => line.push_str(&location.raw_len().to_string()),
            ListColumn::StoredLen => line.push_str(&location.stored_len.to_string()),
            ListColumn::Attribute(number) => {
                line.push_str(&attributes.get(*number).and_then(Option::as_ref).map_or_else(String::new, shown));
            }
        }
    }
    Ok(line)
}

fn row(dataset: &Dataset, ordinal: u64, columns: &[ListColumn]) -> anyhow::Result<SampleRow> {
    let location = dataset.locate(ordinal)?;
    let names = dataset.schema().attributes();
    let values = dataset.attributes(ordinal)?;
    let has = |column| columns.contains(&column);
    let member = |column: &ListColumn| match column {
        ListColumn::Attribute(number) => {
            let value = values.get(*number)?.as_ref().map_or(Value::Null, json);
            Some((names.get(*number)?.name.clone(), value))
        }
        _ => None,
    };
    let attributes: Map<String, Value> = columns.iter().filter_map(member).collect();
    let key = if has(ListColumn::Key) { dataset.key(ordinal)? } else { None };
    Ok(SampleRow {
        ordinal: has(ListColumn::Ordinal).then_some(ordinal),
        key: key.map(key_members).unwrap_or_default(),
        payload_len: has(ListColumn::PayloadLen).then(|| location.raw_len()),
        stored_len: has(ListColumn::StoredLen).then_some(location.stored_len),
        attributes: (!attributes.is_empty() || names.is_empty()).then_some(attributes),
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

pub(crate) fn json(value: &AttributeValue) -> Value {
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
