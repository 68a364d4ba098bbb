//! The rows and columns of a table while its files are read.

use std::collections::HashMap;
use std::path::PathBuf;

use grainstore_format::{Remedy, escape_bytes, shown_names};

use super::Wanted;
use super::cell::{CellType, Evidence};
use super::rows::{Line, TableRows};
use crate::{Remark, SourceError};

/// More columns than a schema has items are not read.
const COLUMN_COUNT_MAX: usize = 1024;

/// Names of columns that are shown.
const SHOWN_MAX: usize = 20;

/// A table that is being read.
pub(super) struct Builder<'a> {
    files: &'a [PathBuf],
    /// Index of the file that is being read.
    pub(super) file: usize,
    /// Prepended to each path of that file.
    pub(super) prefix: Vec<u8>,
    wanted: Wanted<'a>,
    pub(super) rows: TableRows,
    pub(super) columns: Vec<(String, Evidence)>,
    numbers: HashMap<String, usize>,
}

/// A cell that is not empty, as it was read.
pub(super) struct ReadCell<'a> {
    pub(super) column: usize,
    pub(super) text: &'a str,
    pub(super) cell_type: CellType,
}

impl<'a> Builder<'a> {
    pub(super) fn new(files: &'a [PathBuf], wanted: Wanted<'a>) -> Self {
        let rows = TableRows::default();
        let columns = Vec::new();
        let numbers = HashMap::new();
        Self { files, file: 0, prefix: Vec::new(), wanted, rows, columns, numbers }
    }

    /// Which of these columns holds the path.
    ///
    /// # Errors
    /// Where none does.
    pub(super) fn path_column<'n>(
        &self,
        mut names: impl Iterator<Item = &'n str>,
        line: u64,
    ) -> Result<usize, SourceError> {
        let mut others = Vec::new();
        let found = names.position(|name| {
            if others.len() < SHOWN_MAX {
                others.push(name.to_owned());
            }
            self.wanted.path_names.contains(&name)
        });
        match found {
            Some(number) => Ok(number),
            None if self.wanted.or_first => Ok(0),
            None => {
                let expected = self.wanted.path_names.join(", ");
                let what = if self.wanted.are_keys { "the samples' keys" } else { "the files' paths" };
                let others = shown_names(&others);
                let why = format!(
                    "line {line}: no column is called {expected}; one with {what} is expected (there are: {others})"
                );
                let why = match self.wanted.are_keys {
                    true => Remark::new(why, Remedy::NameKeyColumn),
                    false => why.into(),
                };
                Err(SourceError::refused(&self.files[self.file], why))
            }
        }
    }

    /// The index of the column with this name, which is added where there is none yet.
    ///
    /// # Errors
    /// Where it has no name, or there are too many.
    pub(super) fn column(&mut self, name: &str, line: u64) -> Result<usize, SourceError> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        let number = self.columns.len();
        if name.is_empty() {
            return Err(self.refused(line, "a column has no name; the first line names the columns"));
        }
        if number == COLUMN_COUNT_MAX {
            return Err(self.refused(line, &format!("there are more than {COLUMN_COUNT_MAX} columns")));
        }
        self.columns.push((name.to_owned(), Evidence::default()));
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    /// Adds a row; `cells` are in the order of columns.
    ///
    /// # Errors
    /// Where the path is empty.
    pub(super) fn row(&mut self, path: &[u8], cells: &[ReadCell<'_>], line: u64) -> Result<(), SourceError> {
        let are_keys = self.wanted.are_keys;
        let path = path.strip_prefix(b"./").filter(|_| !are_keys).unwrap_or(path);
        if path.is_empty() {
            return Err(self.refused(line, if are_keys { "the row has no key" } else { "the row names no file" }));
        }
        let line = Line { file: self.file, number: line };
        for cell in cells {
            let (_, evidence) = &mut self.columns[cell.column];
            evidence.add(cell.cell_type, cell.text, line);
        }
        let cells = cells.iter().map(|cell| (cell.column, cell.text.as_bytes()));
        if path.starts_with(b"/") || self.prefix.is_empty() {
            self.rows.push(path, line, cells);
        } else {
            self.rows.push(&[&self.prefix, path].concat(), line, cells);
        }
        Ok(())
    }

    pub(super) fn refused(&self, line: u64, why: &str) -> SourceError {
        let path = self.files[self.file].clone();
        SourceError::Refused { path, why: format!("line {line}: {why}").into() }
    }
}

/// Quotes a cell or a name for a message.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", escape_bytes(&bytes[..bytes.len().min(256)]))
}
