//! The rows of a row group as samples.

use std::io::{Cursor, Read};
use std::ops::Range;
use std::path::Path;

use grainstore_format::{FieldType, MAX_KEY_LEN};
use grainstore_writer::{Sample, StreamedSample};
use parquet::data_type::AsBytes;

use super::cells::{Cell, Cells};
use super::columns::ColumnMapping;
use super::kind::ColumnKind;
use crate::{Bad, Reach, RecordLocation, SampleReader, SourceSample, WHOLE_LEN_MAX};

/// The rows of a row group, from the first one on.
pub(super) struct RowGroupSamples<'a> {
    pub(super) path: &'a Path,
    pub(super) mapping: &'a ColumnMapping,
    pub(super) group: usize,
    /// The number of its first row in the file.
    pub(super) first_row: u64,
    pub(super) row_count: u64,
    pub(super) row: u64,
    /// One for each column of the mapping.
    pub(super) cells: Vec<Box<dyn Cells>>,
    pub(super) long: Cursor<Vec<u8>>,
}

impl SampleReader for RowGroupSamples<'_> {
    fn next(&mut self) -> Result<Option<SourceSample>, Bad> {
        if self.row >= self.row_count {
            return Ok(None);
        }
        let row = self.row;
        let cells = match self.read() {
            Ok(cells) => cells,
            Err(why) => {
                self.row = self.row_count;
                return Err(self.bad(row, why, Reach::Rest));
            }
        };
        self.row += 1;
        let sample = self.mapping.sample(&cells).map_err(|why| self.bad(row, why, Reach::Sample))?;
        Ok(Some(self.item(sample)))
    }

    fn payload(&mut self) -> &mut dyn Read {
        &mut self.long
    }
}

impl RowGroupSamples<'_> {
    fn read(&mut self) -> Result<Vec<Cell>, String> {
        let named = self.cells.iter_mut().zip(&self.mapping.columns);
        named
            .map(|(cells, column)| {
                cells.next().map_err(|why| format!("column \"{}\": {why}", column.name.escape_debug()))
            })
            .collect()
    }

    fn item(&mut self, sample: Sample) -> SourceSample {
        let len = sample.payload.len() as u64;
        if len <= WHOLE_LEN_MAX {
            return SourceSample::Whole { sample, offset: 0 };
        }
        // Its page is in memory anyway.
        let Sample { key, attributes, payload, fields } = sample;
        self.long = Cursor::new(payload);
        SourceSample::Long { sample: StreamedSample { key, attributes, fields, len }, offset: 0 }
    }

    fn bad(&self, row: u64, why: String, reach: Reach) -> Bad {
        let location = RecordLocation { record: self.first_row.checked_add(row), ..RecordLocation::default() };
        Bad::new(self.path, location, format!("row group {}: {why}", self.group), reach)
    }
}

impl ColumnMapping {
    /// The sample of a row; `cells` has one for each column.
    fn sample(&self, cells: &[Cell]) -> Result<Sample, String> {
        let mut attributes = Vec::with_capacity(self.attributes.len());
        for (column, kind) in &self.attributes {
            let cell = &cells[*column];
            let value = match kind {
                ColumnKind::Time { unit_ns } => cell.time(*unit_ns),
                ColumnKind::Number(kind) => cell.value(kind),
                ColumnKind::Category => cell.category(),
                ColumnKind::Bytes | ColumnKind::Text | ColumnKind::Array(_) | ColumnKind::List(_) => {
                    Err("bytes, which are not an attribute".into())
                }
            };
            attributes.push(value.map_err(|why| self.of_column(*column, &why))?);
        }
        let mut fields = Vec::with_capacity(self.fields.len());
        let mut payload = Vec::with_capacity(self.payload_len(cells));
        for (column, kind) in &self.fields {
            let range = add_field(&cells[*column], kind, &mut payload).map_err(|why| self.of_column(*column, &why))?;
            fields.push(range);
        }
        match fields[..] {
            [None] => return Err("its only field is null; a sample needs one".into()),
            [Some(_)] => fields.clear(),
            _ => {}
        }
        let key = self.key.map(|column| self.key(&cells[column], column)).transpose()?.unwrap_or_default();
        Ok(Sample { key, attributes, payload, fields })
    }

    fn key(&self, cell: &Cell, column: usize) -> Result<Vec<u8>, String> {
        let key = match (cell, &self.columns[column].kind) {
            (Cell::Null, _) => return Err("its key is null".into()),
            (Cell::Bytes(bytes), _) => bytes.as_bytes().to_vec(),
            (cell, ColumnKind::Number(kind)) => match cell.value(kind)? {
                Some(grainstore_format::AttributeValue::Uint(number)) => number.to_string().into_bytes(),
                Some(grainstore_format::AttributeValue::Int(number)) => number.to_string().into_bytes(),
                _ => return Err("its key is not an integer".into()),
            },
            _ => return Err("its key is not bytes".into()),
        };
        match key.len() {
            1..=MAX_KEY_LEN => Ok(key),
            len => Err(format!("its key has {len} bytes; keys have 1 to {MAX_KEY_LEN}")),
        }
    }

    fn payload_len(&self, cells: &[Cell]) -> usize {
        let len = |cell: &Cell| if let Cell::Bytes(bytes) = cell { bytes.len() } else { 0 };
        self.fields.iter().map(|(column, _)| len(&cells[*column])).sum()
    }

    fn of_column(&self, column: usize, why: &str) -> String {
        format!("column \"{}\": {why}", self.columns[column].name.escape_debug())
    }
}

fn add_field(cell: &Cell, kind: &FieldType, payload: &mut Vec<u8>) -> Result<Option<Range<u64>>, String> {
    let bytes = match cell {
        Cell::Null => return Ok(None),
        Cell::Bytes(bytes) => bytes.as_bytes(),
        Cell::NullInList(at) => return Err(format!("element {at} of its list is null; arrays have no nulls")),
        _ => return Err("a number where bytes are expected".into()),
    };
    if *kind == FieldType::Str
        && let Err(error) = std::str::from_utf8(bytes)
    {
        return Err(format!("text that is not UTF-8 at its byte {}", error.valid_up_to()));
    }
    if !kind.allows_len(bytes.len() as u64) {
        return Err(format!(
            "a list of {} bytes; all rows of its row groups seemed to be {}",
            bytes.len(),
            kind.name()
        ));
    }
    let start = payload.len() as u64;
    payload.extend_from_slice(bytes);
    Ok(Some(start..payload.len() as u64))
}
