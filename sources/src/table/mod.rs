//! Tables in CSV, TSV or JSON Lines, with a row for each file, or for each sample of a file.
//!
//! One column is a path. Every other column becomes an attribute if all of its cells are numbers or booleans, else
//! text. Empty cells are null. Text in a column named `label` is a class name and becomes the number of the class: its
//! index among the sorted names. The caller decides how paths and texts are used.

mod builder;
mod cell;
mod columns;
mod delimited;
mod file_format;
mod json_lines;
mod rows;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grainstore_format::{AttributeValue, shown_path};

use crate::{Chosen, SourceError};
use builder::Builder;
pub(crate) use builder::quoted;
use cell::FLOAT;
use columns::LABEL;
pub(crate) use columns::{Column, ColumnUse};
use file_format::TableFormat;
pub(crate) use rows::{Line, TableRows};

/// Which columns a caller expects in a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Names that the column of paths may have.
    pub(crate) path_names: &'a [&'a str],
    /// Whether the first column has the paths if no column has one of these names.
    pub(crate) or_first: bool,
    /// Columns that the caller reads itself; they are neither attributes nor fields.
    pub(crate) plain: &'static [&'static str],
    /// Whether the paths are keys of samples, which are taken as they are.
    pub(crate) are_keys: bool,
}

/// A table, its rows sorted by path; those of one path in the order in which they are in the files.
#[derive(Debug)]
pub(crate) struct Table {
    files: Vec<PathBuf>,
    rows: TableRows,
    columns: Vec<Column>,
    /// What the number of a row counts.
    place: &'static str,
    /// For each column of text that also has numbers, its name and where its first text is.
    mixed: Vec<(String, Line, String)>,
}

impl Table {
    /// A table of rows that were read elsewhere: the text of each cell is that of its value.
    pub(crate) fn of_rows(file: &Path, mut rows: TableRows, columns: Vec<Column>) -> Self {
        rows.sort();
        Self { files: vec![file.to_owned()], rows, columns, place: "row", mixed: Vec::new() }
    }

    /// The row of a path; the first where there are several.
    pub(crate) fn find(&self, path: &[u8]) -> Option<usize> {
        let row = partition_point(self.len(), |row| self.rows.path(row) < path);
        (row < self.len() && self.rows.path(row) == path).then_some(row)
    }

    /// Refuses two rows of one path.
    ///
    /// # Errors
    /// Names the path, and where both are.
    pub(crate) fn check_distinct(&self) -> Result<(), SourceError> {
        let is_twice = |row: &usize| self.path(row - 1) == self.path(*row);
        let Some(row) = (1..self.len()).find(is_twice) else { return Ok(()) };
        let (place, first) = (self.place, self.rows.line(row - 1).number);
        let why = format!("the key {} is that of {place} {first} already", quoted(self.path(row)));
        Err(self.refused_row(row, why))
    }

    /// The values of a row where each column is an attribute, texts too, in the order of columns.
    pub(crate) fn values(&self, row: usize) -> Vec<Option<AttributeValue>> {
        let mut values: Vec<Option<AttributeValue>> = vec![None; self.columns.len()];
        for cell in self.rows.cells(row) {
            let text = self.rows.text(&cell);
            values[cell.column] = match self.columns[cell.column].values {
                ColumnUse::Text => Some(AttributeValue::Category(text.into())),
                ref values => values.value(text),
            };
        }
        values
    }

    /// Reads files, whose columns are matched by name. Paths are relative to the folder of the first file.
    ///
    /// # Errors
    /// Where one cannot be read or understood, or has no rows.
    pub(crate) fn read(files: &[PathBuf], wanted: Wanted<'_>) -> Result<Self, SourceError> {
        let mut builder = Builder::new(files, wanted);
        for (number, file) in files.iter().enumerate() {
            let before = builder.rows.len();
            builder.file = number;
            builder.prefix = prefix(file, &files[0])?;
            let (form, content) = file_format::open(file)?;
            match form {
                TableFormat::Delimited(delimiter) => delimited::read(content, delimiter, &mut builder)?,
                TableFormat::JsonLines => json_lines::read(content, &mut builder)?,
            }
            if builder.rows.len() == before {
                return Err(SourceError::NoSamples { path: file.clone(), why: "it has no rows".into() });
            }
        }
        let Builder { mut rows, columns, .. } = builder;
        rows.sort();
        let mut table = Self { files: files.to_vec(), rows, columns: Vec::new(), place: "line", mixed: Vec::new() };
        for (number, (name, evidence)) in columns.into_iter().enumerate() {
            if wanted.plain.contains(&name.as_str()) {
                table.columns.push(Column { name, values: ColumnUse::Plain });
                continue;
            }
            let kind = evidence.kind().map_err(|unfit| {
                let (text, name) = (quoted(unfit.text.as_bytes()), quoted(name.as_bytes()));
                let why = match unfit.kind {
                    FLOAT => format!("{text} of column {name}, which has fractions, too, is no float64 exactly"),
                    kind => format!(
                        "{text} of column {name} does not fit {kind}, as the column's other cells do: the integers of a column \
                         are all from -2^63 to 2^63-1, or all from 0 to 2^64-1"
                    ),
                };
                table.refused(unfit.line, why)
            })?;
            if let Some((line, text)) = evidence.stray_text() {
                if name == LABEL {
                    let why = format!(
                        "{} of column \"label\" is text, and other cells are numbers, which as names of classes would get other \
                         numbers: make all of them numbers, or none",
                        quoted(text.as_bytes())
                    );
                    return Err(table.refused(*line, why));
                }
                table.mixed.push((name.clone(), *line, text.clone()));
            }
            let values = ColumnUse::of(&table.rows, number, &name, kind);
            table.columns.push(Column { name, values });
        }
        Ok(table)
    }

    /// Leaves out columns: they become neither attributes nor fields. Those that the caller reads itself stay; `spared`
    /// of them may be named all the same.
    ///
    /// # Errors
    /// Names a column that there is not.
    pub(crate) fn choose(&mut self, chosen: &Chosen, spared: &[&str]) -> Result<(), String> {
        let is_own = |column: &&Column| column.values != ColumnUse::Plain || spared.contains(&column.name.as_str());
        chosen.check("column", self.columns.iter().filter(is_own).map(|column| column.name.as_str()))?;
        for Column { name, values } in &mut self.columns {
            if !chosen.takes([name, name]) {
                *values = ColumnUse::Plain;
            }
        }
        Ok(())
    }

    /// Notes about columns that would have been numbers but for some texts.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.mixed.iter().filter(|(name, ..)| self.is_taken(name)).map(|(name, line, text)| {
            format!(
                "column {} of {} is text, not numbers: {} {} has {}",
                quoted(name.as_bytes()),
                shown_path(&self.files[line.file]),
                self.place,
                line.number,
                quoted(text.as_bytes())
            )
        })
    }

    fn is_taken(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name && column.values != ColumnUse::Plain)
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

    /// A number that increases from row to row in the order of the files.
    pub(crate) fn turn(&self, row: usize) -> usize {
        self.rows.turn(row)
    }

    /// The file of a row, and its line there.
    pub(crate) fn location(&self, row: usize) -> (&Path, u64) {
        let Line { file, number } = self.rows.line(row);
        (&self.files[file], number)
    }

    /// A hash of all rows.
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
            values[cell.column] = self.columns[cell.column].values.value(self.rows.text(&cell));
        }
        let attributes = values.into_iter().zip(&self.columns);
        attributes.filter(|(_, column)| column.is_attribute()).map(|(value, _)| value).collect()
    }

    /// The texts of a row, in the order of columns that are fields.
    pub(crate) fn texts(&self, row: usize) -> Vec<Option<&str>> {
        let mut texts = vec![None; self.columns.len()];
        for cell in self.rows.cells(row) {
            texts[cell.column] = Some(self.rows.text(&cell));
        }
        let fields = texts.into_iter().zip(&self.columns);
        fields.filter(|(_, column)| column.values == ColumnUse::Text).map(|(text, _)| text).collect()
    }

    /// The error for a row.
    pub(crate) fn refused_row(&self, row: usize, why: impl Into<String>) -> SourceError {
        self.refused(self.rows.line(row), why.into())
    }

    fn refused(&self, line: Line, why: String) -> SourceError {
        let path = self.files[line.file].clone();
        SourceError::Refused { path, why: format!("{} {}: {why}", self.place, line.number).into() }
    }
}

/// The first number below `len` that is not before; all that are come first.
fn partition_point(len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// The prefix that makes the paths of a file relative to the folder of the first file.
fn prefix(file: &Path, first: &Path) -> Result<Vec<u8>, SourceError> {
    let folder = file.parent();
    let home = first.parent();
    let Some(folder) = folder.filter(|_| folder != home) else { return Ok(Vec::new()) };
    let failed = |source| SourceError::Path { path: file.to_owned(), source };
    let folder = std::path::absolute(folder.join(".")).map_err(failed)?;
    Ok([folder.as_os_str().as_bytes(), b"/"].concat())
}
