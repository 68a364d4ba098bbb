//! A Parquet file as a table with a row for each sample: every column but that of the keys becomes an attribute.

use std::path::Path;

use grainstore_format::{AttributeType, AttributeValue, MAX_KEY_LEN, Remedy, escape_bytes, shown_names};

use super::cells::{self, Cell};
use super::file::{CheckedGroup, ParquetFile};
use super::kind::ColumnKind;
use crate::table::{Column, ColumnUse, Line, Table, TableRows};
use crate::{Remark, SourceError};

/// Reads a whole file; `key` is the column of the keys.
///
/// # Errors
/// Where it cannot be read, there is no such column, or another can be no attribute.
pub(crate) fn read_table(path: &Path, key: &str) -> Result<Table, SourceError> {
    let file = ParquetFile::open(path)?;
    let refused = |why: String| SourceError::refused(path, why);
    let mut names = Vec::new();
    let mut kinds = Vec::new();
    for (list_path, column) in file.named_leaves() {
        let kind = ColumnKind::of(column, list_path.listed_level);
        let not_taken = |what: &str| {
            let name = escape_bytes(list_path.name.as_bytes());
            refused(format!("column \"{name}\" is {what}, which no attribute holds: leave it out of the table"))
        };
        let kind = kind.map_err(not_taken)?;
        let is_key = list_path.name == key;
        match &kind {
            ColumnKind::List(_) | ColumnKind::Array(_) => return Err(not_taken("a list")),
            ColumnKind::Bytes if !is_key => return Err(not_taken("bytes")),
            _ => {}
        }
        names.push(list_path.name.clone());
        kinds.push(kind);
    }
    let Some(key) = names.iter().position(|name| name == key) else {
        let names = shown_names(&names);
        let why = format!(
            "no column is called {}; one with the samples' keys is expected (there are: {names})",
            escape_bytes(key.as_bytes())
        );
        return Err(SourceError::refused(path, Remark::new(why, Remedy::NameKeyColumn)));
    };
    let rows = read_rows(&file, &kinds, key)?;
    let columns = names.into_iter().zip(&kinds).enumerate().filter(|(number, _)| *number != key);
    let columns = columns.map(|(_, (name, kind))| Column { name, values: use_of(kind) }).collect();
    Ok(Table::of_rows(path, rows, columns))
}

fn use_of(kind: &ColumnKind) -> ColumnUse {
    match kind {
        ColumnKind::Number(kind) => ColumnUse::Attribute(kind.clone()),
        ColumnKind::Time { .. } => ColumnUse::Attribute(AttributeType::Timestamp),
        ColumnKind::Bytes | ColumnKind::Text | ColumnKind::Category | ColumnKind::Array(_) | ColumnKind::List(_) => {
            ColumnUse::Text
        }
    }
}

fn read_rows(file: &ParquetFile, kinds: &[ColumnKind], key: usize) -> Result<TableRows, SourceError> {
    let leaves: Vec<usize> = (0..kinds.len()).collect();
    let mut rows = TableRows::default();
    let mut number = 0;
    for group in 0..file.metadata.num_row_groups() {
        let CheckedGroup { row_count, .. } = file.check_group(group, &leaves)?;
        let at = file.reopen().map_err(SourceError::from)?;
        let metadata = file.metadata.row_group(group);
        let failed = |why: String| SourceError::refused(&file.path, format!("row group {group}: {why}"));
        let open = |(leaf, kind): (usize, &ColumnKind)| cells::open(at.clone(), metadata, leaf, kind);
        let mut cells = kinds.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        for _ in 0..row_count {
            number += 1;
            let wrong = |why: String| SourceError::refused(&file.path, format!("row {number}: {why}"));
            let mut sample_key = String::new();
            let mut texts = Vec::with_capacity(kinds.len());
            for (leaf, (cells, kind)) in cells.iter_mut().zip(kinds).enumerate() {
                let text = cells.next().and_then(|cell| text_of(&cell, kind)).map_err(wrong)?;
                if leaf == key {
                    sample_key = text.unwrap_or_default();
                } else if let Some(text) = text {
                    texts.push((leaf - usize::from(leaf > key), text));
                }
            }
            if !(1..=MAX_KEY_LEN).contains(&sample_key.len()) {
                return Err(wrong(format!("its key has {} bytes; keys have 1 to {MAX_KEY_LEN}", sample_key.len())));
            }
            let texts = texts.iter().map(|(column, text)| (*column, text.as_bytes()));
            rows.push(sample_key.as_bytes(), Line { file: 0, number }, texts);
        }
    }
    Ok(rows)
}

/// The text of a value, from which the value can be read again; `None` for null.
fn text_of(cell: &Cell, kind: &ColumnKind) -> Result<Option<String>, String> {
    let value = match (cell, kind) {
        (Cell::Null, _) => return Ok(None),
        (Cell::Bytes(bytes), ColumnKind::Text | ColumnKind::Category | ColumnKind::Bytes) => {
            let text = std::str::from_utf8(bytes.data());
            return text.map(|text| Some(text.to_owned())).map_err(|_| "a text is not UTF-8".to_owned());
        }
        (cell, ColumnKind::Time { unit_ns }) => cell.time(*unit_ns)?,
        (cell, ColumnKind::Number(kind)) => cell.value(kind)?,
        _ => return Err("a number where a text is expected".to_owned()),
    };
    Ok(value.map(|value| match value {
        AttributeValue::Bool(value) => value.to_string(),
        AttributeValue::Int(value) | AttributeValue::Timestamp(value) => value.to_string(),
        AttributeValue::Uint(value) => value.to_string(),
        AttributeValue::Float16(value) => value.to_f32().to_string(),
        AttributeValue::Bfloat16(value) => value.to_f32().to_string(),
        AttributeValue::Float32(value) => value.to_string(),
        AttributeValue::Float64(value) => value.to_string(),
        AttributeValue::Category(text) => text.to_string(),
        AttributeValue::Opaque(bytes) => escape_bytes(&bytes),
    }))
}
