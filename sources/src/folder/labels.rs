//! A table of labels: one row for each file of a folder, matched by path.
//!
//! The column named `path`, `file`, `file_name`, `filename`, `name` or `key`, else the first one, holds the file's key.
//! Columns of text become fields, and class names are stored as `class_names`; see [`table`](crate::table) for the
//! rest.
//!
//! Rows and files must match one to one: an error is better than a label that is lost because of a typo.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use grainstore_format::AttributeValue;

use crate::SourceError;
use crate::table::{Column, Table, Wanted, quoted};

const WANTED: Wanted<'static> = Wanted {
    path_names: &["path", "file", "file_name", "filename", "name", "key"],
    or_first: true,
    plain: &[],
    are_keys: false,
};

/// A table of labels, its rows in the order of keys.
#[derive(Debug)]
pub(super) struct Labels {
    file: PathBuf,
    table: Table,
}

impl Labels {
    /// Reads the whole table.
    ///
    /// # Errors
    /// Where it cannot be read or understood, or a file has two rows.
    pub(super) fn read(file: &Path) -> Result<Self, SourceError> {
        let table = Table::read(&[file.to_owned()], WANTED).map_err(|error| match error {
            // The folder has files: labels without a row are a mistake.
            SourceError::NoSamples { path, why } => SourceError::Refused { path, why },
            error => error,
        })?;
        let labels = Self { file: file.to_owned(), table };
        labels.check_rows()?;
        Ok(labels)
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn columns(&self) -> &[Column] {
        self.table.columns()
    }

    /// Notes about columns that are text because of some of their cells.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.table.notes()
    }

    /// Checks that rows and keys match one to one; `keys` are sorted.
    ///
    /// # Errors
    /// Where they do not: names the first row without a file and the first file without a row, and counts them.
    pub(super) fn check(&self, keys: impl Iterator<Item = Vec<u8>>) -> Result<(), SourceError> {
        let mut rowless = Strays::default();
        let mut fileless = Strays::default();
        let mut paths = (0..self.table.len()).map(|row| self.table.path(row)).peekable();
        let mut keys = keys.peekable();
        loop {
            let order = match (paths.peek(), keys.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(path), Some(key)) => (*path).cmp(key),
            };
            if order.is_eq() {
                paths.next();
                keys.next();
            } else if order.is_lt() {
                fileless.extend(paths.next());
            } else {
                rowless.extend(keys.next().as_deref());
            }
        }
        self.report_strays(&rowless, &fileless)
    }

    /// The attributes of a row, in the order of columns that are attributes.
    pub(super) fn attributes(&self, row: usize) -> Vec<Option<AttributeValue>> {
        self.table.attributes(row)
    }

    /// The texts of a row, in the order of columns that are fields.
    pub(super) fn texts(&self, row: usize) -> Vec<Option<&str>> {
        self.table.texts(row)
    }

    fn check_rows(&self) -> Result<(), SourceError> {
        match (1..self.table.len()).find(|&row| self.table.path(row - 1) == self.table.path(row)) {
            Some(row) => Err(self.refused(format!("{} has two rows", quoted(self.table.path(row))))),
            None => Ok(()),
        }
    }

    fn report_strays(&self, rowless: &Strays, fileless: &Strays) -> Result<(), SourceError> {
        let of = |strays: &Strays, what: &str| {
            let first = strays.first.as_ref()?;
            Some(format!("{} {what}, the first of them {}", strays.count, quoted(first)))
        };
        let what = [of(rowless, "files have no row"), of(fileless, "rows have no file")];
        let what: Vec<String> = what.into_iter().flatten().collect();
        if what.is_empty() {
            return Ok(());
        }
        let hint = "each row names one file by its path below the folder; the first line names the columns";
        Err(self.refused(format!("{}; {hint}", what.join("; "))))
    }

    fn refused(&self, why: String) -> SourceError {
        SourceError::Refused { path: self.file.clone(), why: why.into() }
    }
}

/// Rows without a file, or files without a row.
#[derive(Default)]
struct Strays {
    first: Option<Vec<u8>>,
    count: u64,
}

impl Strays {
    fn extend(&mut self, path: Option<&[u8]>) {
        if let Some(path) = path {
            self.first.get_or_insert_with(|| path.to_vec());
            self.count += 1;
        }
    }
}
