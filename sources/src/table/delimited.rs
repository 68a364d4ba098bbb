//! Reads tables in CSV or TSV: the first line has the names of the columns, every other line is a row with as many
//! cells.

use std::io::Read;

use csv::ByteRecord;

use super::builder::{Builder, ReadCell, quoted};
use super::cell::CellType;
use crate::SourceError;

/// Where the columns of the file are in the table.
struct HeaderColumns {
    path: usize,
    /// For each column of the file, the column of the table; `None` for the column of paths.
    columns: Vec<Option<usize>>,
}

/// # Errors
/// Where it cannot be read, a row has too many or too few cells, or a cell is not UTF-8.
pub(super) fn read(content: impl Read, delimiter: u8, builder: &mut Builder<'_>) -> Result<(), SourceError> {
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(content);
    let mut record = ByteRecord::new();
    let mut header: Option<HeaderColumns> = None;
    loop {
        let line = reader.position().line();
        if !reader.read_byte_record(&mut record).map_err(|error| builder.refused(line, &error.to_string()))? {
            return Ok(());
        }
        let line = record.position().map_or(line, csv::Position::line);
        match &header {
            None => header = Some(read_header(&record, line, builder)?),
            Some(header) => read_row(&record, header, line, builder)?,
        }
    }
}

fn read_header(record: &ByteRecord, line: u64, builder: &mut Builder<'_>) -> Result<HeaderColumns, SourceError> {
    let names = record.iter().map(|name| text(name, line, builder)).collect::<Result<Vec<&str>, _>>()?;
    if let Some(name) = names.iter().find(|name| name.trim() != **name) {
        let name = quoted(name.as_bytes());
        let why = format!("the name of column {name} begins or ends with a space: remove those beside the separators");
        return Err(builder.refused(line, &why));
    }
    let path = builder.path_column(names.iter().copied(), line)?;
    let mut columns = Vec::with_capacity(names.len());
    for (number, name) in names.iter().enumerate() {
        if names[..number].contains(name) {
            return Err(builder.refused(line, &format!("two columns are named {}", quoted(name.as_bytes()))));
        }
        columns.push(if number == path { None } else { Some(builder.column(name, line)?) });
    }
    Ok(HeaderColumns { path, columns })
}

fn read_row(
    record: &ByteRecord,
    header: &HeaderColumns,
    line: u64,
    builder: &mut Builder<'_>,
) -> Result<(), SourceError> {
    if record.len() != header.columns.len() {
        let found = record.len();
        let expected = header.columns.len();
        let why = format!("{found} cells, {expected} expected, as many as the first line names");
        return Err(builder.refused(line, &why));
    }
    let mut cells = Vec::with_capacity(record.len());
    for (cell, column) in record.iter().zip(&header.columns) {
        if let Some(column) = *column
            && !cell.is_empty()
        {
            let text = text(cell, line, builder)?;
            cells.push(ReadCell { column, text, cell_type: CellType::of(text) });
        }
    }
    builder.row(&record[header.path], &cells, line)
}

fn text<'r>(cell: &'r [u8], line: u64, builder: &Builder<'_>) -> Result<&'r str, SourceError> {
    std::str::from_utf8(cell).map_err(|_| builder.refused(line, &format!("{} is not UTF-8", quoted(cell))))
}
