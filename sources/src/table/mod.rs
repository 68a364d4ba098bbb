//! Tables that people write: CSV, TSV or JSON Lines, with a row for each file, or for each sample of one.
//!
//! One column is a path. Every other column becomes an attribute where all of its cells are numbers or truth values, else
//! text; empty cells are null. Text in a column named `label` is the name of a class: it becomes a number, the place of
//! the name among all, sorted. What is made of paths and texts is up to the caller that reads the table.

mod builder;
mod cell;
mod columns;
mod delimited;
mod form;
mod json_lines;
mod rows;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grainstore_format::AttributeValue;

use crate::SourceError;
use builder::Builder;
pub(crate) use builder::quoted;
pub(crate) use columns::{Column, ColumnUse};
use form::Form;
use rows::{Line, TableRows};

/// What is looked for in a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Names that the column of paths may have.
    pub(crate) path_names: &'static [&'static str],
    /// Whether the first column has the paths where none is called so.
    pub(crate) or_first: bool,
    /// Columns that are neither attributes nor fields, whatever their cells are.
    pub(crate) plain: &'static [&'static str],
}

/// A table, its rows sorted by path; those of one path in the order in which they are in the files.
#[derive(Debug)]
pub(crate) struct Table {
    files: Vec<PathBuf>,
    rows: TableRows,
    columns: Vec<Column>,
}

impl Table {
    /// Reads files, whose columns are put together by name. Paths count from the folder of the first.
    ///
    /// # Errors
    /// Where one cannot be read or understood, or has no rows.
    pub(crate) fn read(files: &[PathBuf], wanted: Wanted) -> Result<Self, SourceError> {
        let mut builder = Builder::new(files, wanted);
        for (number, file) in files.iter().enumerate() {
            let before = builder.rows.len();
            builder.file = number;
            builder.prefix = prefix(file, &files[0])?;
            let (form, content) = form::open(file)?;
            match form {
                Form::Delimited(delimiter) => delimited::read(content, delimiter, &mut builder)?,
                Form::JsonLines => json_lines::read(content, &mut builder)?,
            }
            if builder.rows.len() == before {
                return Err(SourceError::Refused { path: file.clone(), why: "it has no rows".into() });
            }
        }
        let Builder { mut rows, columns, .. } = builder;
        rows.sort();
        let mut table = Self { files: files.to_vec(), rows, columns: Vec::new() };
        for (number, (name, evidence)) in columns.into_iter().enumerate() {
            if wanted.plain.contains(&name.as_str()) {
                table.columns.push(Column { name, values: ColumnUse::Plain });
                continue;
            }
            let kind = evidence.kind().map_err(|(line, text)| {
                let text = quoted(text.as_bytes());
                let name = quoted(name.as_bytes());
                table.refused(
                    line,
                    format!("{text} of column {name} does not fit an int64, as the column's other cells do"),
                )
            })?;
            let values = ColumnUse::of(&table.rows, number, &name, kind);
            table.columns.push(Column { name, values });
        }
        Ok(table)
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub(crate) fn path(&self, row: usize) -> &[u8] {
        self.rows.path(row)
    }

    /// A number that grows from row to row in the order in which they are in the files.
    pub(crate) fn turn(&self, row: usize) -> usize {
        self.rows.turn(row)
    }

    /// The file that a row is in, and its line there.
    pub(crate) fn place(&self, row: usize) -> (&Path, u64) {
        let Line { file, number } = self.rows.line(row);
        (self.files.get(file).map_or(Path::new(""), PathBuf::as_path), number)
    }

    /// Of all rows.
    pub(crate) fn hash(&self) -> u64 {
        self.rows.hash()
    }

    /// The text of a cell; `None` where it is empty.
    pub(crate) fn cell(&self, row: usize, column: usize) -> Option<&str> {
        let cell = self.rows.cells(row).find(|cell| cell.column == column)?;
        Some(self.rows.text(&cell))
    }

    /// The attributes of a row, in the order of columns that are attributes.
    pub(crate) fn attributes(&self, row: usize) -> Vec<Option<AttributeValue>> {
        let mut values: Vec<Option<AttributeValue>> = vec![None; self.columns.len()];
        for cell in self.rows.cells(row) {
            if let (Some(value), Some(column)) = (values.get_mut(cell.column), self.columns.get(cell.column)) {
                *value = column.values.value(self.rows.text(&cell));
            }
        }
        let attributes = values.into_iter().zip(&self.columns);
        attributes.filter(|(_, column)| column.is_attribute()).map(|(value, _)| value).collect()
    }

    /// The texts of a row, in the order of columns that are fields.
    pub(crate) fn texts(&self, row: usize) -> Vec<Option<&str>> {
        let mut texts = vec![None; self.columns.len()];
        for cell in self.rows.cells(row) {
            if let Some(text) = texts.get_mut(cell.column) {
                *text = Some(self.rows.text(&cell));
            }
        }
        let fields = texts.into_iter().zip(&self.columns);
        fields.filter(|(_, column)| column.values == ColumnUse::Text).map(|(text, _)| text).collect()
    }

    /// What is wrong with a row.
    pub(crate) fn refused_row(&self, row: usize, why: impl Into<String>) -> SourceError {
        self.refused(self.rows.line(row), why.into())
    }

    fn refused(&self, line: Line, why: String) -> SourceError {
        let path = self.files.get(line.file).cloned().unwrap_or_default();
        SourceError::Refused { path, why: format!("line {}: {why}", line.number).into() }
    }
}

/// What is before the paths of a file so that they count from the folder of the first one.
fn prefix(file: &Path, first: &Path) -> Result<Vec<u8>, SourceError> {
    let folder = file.parent();
    let home = first.parent();
    let Some(folder) = folder.filter(|_| folder != home) else { return Ok(Vec::new()) };
    let failed = |source| SourceError::Path { path: file.to_owned(), source };
    let folder = std::path::absolute(folder.join(".")).map_err(failed)?;
    Ok([folder.as_os_str().as_bytes(), b"/"].concat())
}
