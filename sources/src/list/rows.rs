//! The rows of lists, file by file: where each sample is, and whether two overlap.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grainstore_format::{AttributeValue, MAX_KEY_LEN, shown_path};

use super::shape::ListColumns;
use crate::table::{Table, quoted};
use crate::{SourceError, SourcePart};

/// The rows of lists, and which of them are in which file.
#[derive(Debug)]
pub(super) struct ListedRows {
    table: Table,
    columns: ListColumns,
    /// The folder that paths are relative to.
    folder: PathBuf,
    /// For each part, its rows, which are neighbours in the table.
    parts: Vec<Range<usize>>,
}

/// The byte range of a sample in its file. Ordered by offset, then by length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Extent {
    /// The offset after the last byte; every row was checked not to overflow it.
    pub(super) fn end(self) -> u64 {
        self.offset + self.len
    }
}

impl ListedRows {
    /// Checks every row.
    ///
    /// # Errors
    /// Where a row has no valid byte range, or has no key and others have.
    pub(super) fn of(table: Table, columns: ListColumns, list: &Path) -> Result<Self, SourceError> {
        let folder = list.parent().map_or_else(PathBuf::new, Path::to_owned);
        let mut rows = Self { table, columns, folder, parts: Vec::new() };
        for row in 0..rows.table.len() {
            rows.check(row)?;
        }
        rows.parts = rows.cut();
        Ok(rows)
    }

    /// A part for each file, in the order in which the files first appear in the lists.
    pub(super) fn parts(&self) -> Result<Vec<SourcePart>, SourceError> {
        let mut parts = Vec::with_capacity(self.parts.len());
        for rows in &self.parts {
            let mut len: u64 = 0;
            for row in rows.clone() {
                len = len.saturating_add(self.extent(row)?.len);
            }
            parts.push(SourcePart { path: self.path(rows.start), len, sample_count: Some(rows.len() as u64) });
        }
        Ok(parts)
    }

    pub(super) fn of_part(&self, part: usize) -> Range<usize> {
        self.parts[part].clone()
    }

    /// Where the sample of a row is. The cells are parsed each time: 16 bytes a row would be too much to keep.
    ///
    /// # Errors
    /// Only [`SourceError::Bug`]: every row was checked.
    pub(super) fn extent(&self, row: usize) -> Result<Extent, SourceError> {
        let number = |column| self.table.cell(row, column).and_then(number);
        match (number(self.columns.offset), number(self.columns.length)) {
            (Some(offset), Some(len)) => Ok(Extent { offset, len }),
            _ => Err(SourceError::bug("a row of a list was checked and has no byte range")),
        }
    }

    /// The key of a row; empty where the list has no keys.
    pub(super) fn key(&self, row: usize) -> Vec<u8> {
        self.columns.key.and_then(|column| self.table.cell(row, column)).unwrap_or_default().into()
    }

    pub(super) fn attributes(&self, row: usize) -> Vec<Option<AttributeValue>> {
        self.table.attributes(row)
    }

    pub(super) fn is_keyed(&self) -> bool {
        self.columns.key.is_some()
    }

    /// Where a row is, for messages.
    pub(super) fn shown(&self, row: usize) -> String {
        let (list, line) = self.table.location(row);
        format!("line {line} of {}", shown_path(list))
    }

    /// Whether the samples of each file come in the order of their bytes in it.
    pub(super) fn are_ascending(&self) -> Result<bool, SourceError> {
        for rows in &self.parts {
            if !self.extents(rows)?.is_sorted_by_key(|(extent, _)| *extent) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The first two samples that share bytes, in words.
    pub(super) fn overlap(&self) -> Result<Option<String>, SourceError> {
        for rows in &self.parts {
            let mut sorted = self.extents(rows)?;
            sorted.sort_unstable();
            let overlaps = |pair: &&[(Extent, usize)]| pair[0].0.end() > pair[1].0.offset;
            if let Some(pair) = sorted.windows(2).find(overlaps) {
                let [first, second] = [pair[0], pair[1]]
                    .map(|(extent, row)| format!("{}: {}..{}", self.shown(row), extent.offset, extent.end()));
                return Ok(Some(format!("two of its samples overlap ({first}; {second})")));
            }
        }
        Ok(None)
    }

    /// The extents of rows, with the number of each row.
    fn extents(&self, rows: &Range<usize>) -> Result<Vec<(Extent, usize)>, SourceError> {
        rows.clone().map(|row| Ok((self.extent(row)?, row))).collect()
    }

    /// A hash of the lists' content.
    pub(super) fn hash(&self) -> u64 {
        self.table.hash()
    }

    fn path(&self, row: usize) -> PathBuf {
        self.folder.join(OsStr::from_bytes(self.table.path(row)))
    }

    fn check(&self, row: usize) -> Result<(), SourceError> {
        let offset = self.needed(row, self.columns.offset, "offset")?;
        let len = self.needed(row, self.columns.length, "length")?;
        // Linux keeps the length of a file in a signed number of 64 bits.
        if offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(self.table.refused_row(row, format!("no file has {len} bytes at {offset}")));
        }
        let Some(column) = self.columns.key else { return Ok(()) };
        match self.table.cell(row, column).map_or(0, str::len) {
            0 => Err(self.table.refused_row(row, "its key is empty: every row needs one, or leave out the column")),
            len if len > MAX_KEY_LEN => {
                let why = format!("its key has {len} bytes; keys have {MAX_KEY_LEN} at most");
                Err(self.table.refused_row(row, why))
            }
            _ => Ok(()),
        }
    }

    fn needed(&self, row: usize, column: usize, name: &str) -> Result<u64, SourceError> {
        let cell = self.table.cell(row, column).unwrap_or_default();
        let why = || format!("its {name} is {}; a number of bytes is expected", quoted(cell.as_bytes()));
        number(cell).ok_or_else(|| self.table.refused_row(row, why()))
    }

    /// The rows of each file. The table is sorted by path; the files come in the order of their first rows in the
    /// lists.
    fn cut(&self) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        for row in 0..self.table.len() {
            match parts.last_mut() {
                Some(part) if self.table.path(part.start) == self.table.path(row) => part.end = row + 1,
                _ => parts.push(row..row + 1),
            }
        }
        parts.sort_unstable_by_key(|part| self.table.turn(part.start));
        parts
    }
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
