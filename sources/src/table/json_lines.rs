//! Reads tables in JSON Lines: each line is an object, and its members are the cells. `null` and a missing member are
//! empty cells. Lists and objects are stored as JSON text.

use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::builder::{Builder, ReadCell, quoted};
use super::cell::CellType;
use crate::SourceError;

/// The members of an object in the order of the text.
struct JsonRow(Vec<(String, Value)>);

/// # Errors
/// Where the file cannot be read, a line is not an object, or an object has no path.
pub(super) fn read(mut content: impl BufRead, builder: &mut Builder<'_>) -> Result<(), SourceError> {
    let mut path_name: Option<String> = None;
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let len = content.read_until(b'\n', &mut bytes).map_err(|error| builder.refused(line, &error.to_string()))?;
        if len == 0 {
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let row: JsonRow = serde_json::from_slice(&bytes)
            .map_err(|error| builder.refused(line, &format!("one JSON object is expected: {error}")))?;
        if path_name.is_none() {
            path_name = row.path_name(builder, line)?;
        }
        let Some(name) = path_name.as_deref() else {
            return Err(builder.refused(line, "the row names no file"));
        };
        read_row(&row, name, line, builder)?;
    }
    Ok(())
}

impl JsonRow {
    fn path_name(&self, builder: &Builder<'_>, line: u64) -> Result<Option<String>, SourceError> {
        let number = builder.path_column(self.0.iter().map(|(name, _)| name.as_str()), line)?;
        Ok(self.0.get(number).map(|(name, _)| name.clone()))
    }
}

fn read_row(row: &JsonRow, path_name: &str, line: u64, builder: &mut Builder<'_>) -> Result<(), SourceError> {
    let mut path = None;
    let mut members = Vec::with_capacity(row.0.len());
    for (name, value) in &row.0 {
        if name == path_name {
            path = Some(value);
        } else if let Some((cell_type, text)) = cell(value) {
            members.push((builder.column(name, line)?, cell_type, text));
        }
    }
    members.sort_unstable_by_key(|(column, ..)| *column);
    if let Some(pair) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (name, _) = &builder.columns[pair[0].0];
        return Err(builder.refused(line, &format!("{} is there twice", quoted(name.as_bytes()))));
    }
    let Some(Value::String(path)) = path else {
        return Err(builder.refused(line, &format!("{} is not a text that names a file", quoted(path_name.as_bytes()))));
    };
    let cells: Vec<_> = members
        .iter()
        .map(|(column, cell_type, text)| ReadCell { column: *column, text, cell_type: *cell_type })
        .collect();
    builder.row(path.as_bytes(), &cells, line)
}

fn cell(value: &Value) -> Option<(CellType, String)> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(truth) => (CellType::Truth, truth.to_string()),
        Value::Number(number) if number.is_f64() => (CellType::Number, number.to_string()),
        Value::Number(number) => (CellType::of_integer(&number.to_string()), number.to_string()),
        Value::String(text) => (CellType::Text, text.clone()),
        Value::Array(_) | Value::Object(_) => (CellType::Text, value.to_string()),
    })
}

impl<'de> Deserialize<'de> for JsonRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RowVisitor)
    }
}

struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = JsonRow;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonRow, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(JsonRow(members))
    }
}
