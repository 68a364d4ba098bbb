//! The rows of lists, file by file: where each sample is, and whether two are in one place.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grainstore_format::{AttributeValue, MAX_KEY_LEN, shown_path};

use super::shape::ListColumns;
use crate::table::{Table, quoted};
use crate::{SourceError, SourcePart};

/// Lists that were read, and the rows of each file that they name.
#[derive(Debug)]
pub(super) struct ListedRows {
    table: Table,
    places: ListColumns,
    /// The folder that paths count from.
    folder: PathBuf,
    /// For each part its rows, neighbours in the table.
    parts: Vec<Range<usize>>,
}

/// The bytes of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl ListedRows {
    /// Checks every row.
    ///
    /// # Errors
    /// Where one does not say where its sample is, or has no key and others have.
    pub(super) fn of(table: Table, places: ListColumns, list: &Path) -> Result<Self, SourceError> {
        let folder = list.parent().map_or_else(PathBuf::new, Path::to_owned);
        let mut rows = Self { table, places, folder, parts: Vec::new() };
        for row in 0..rows.table.len() {
            rows.check(row)?;
        }
        rows.parts = rows.cut();
        Ok(rows)
    }

    /// One for each file, in the order in which the lists name them first.
    pub(super) fn parts(&self) -> Vec<SourcePart> {
        let part = |rows: &Range<usize>| SourcePart {
            path: self.path(rows.start),
            len: rows.clone().map(|row| self.extent(row).len).fold(0, u64::saturating_add),
            sample_count: Some(rows.len() as u64),
        };
        self.parts.iter().map(part).collect()
    }

    pub(super) fn of_part(&self, part: usize) -> Range<usize> {
        self.parts.get(part).cloned().unwrap_or_default()
    }

    pub(super) fn extent(&self, row: usize) -> Extent {
        let number = |column| self.table.cell(row, column).and_then(number);
        let offset = number(self.places.offset);
        let len = number(self.places.length);
        debug_assert!(offset.is_some() && len.is_some(), "`check` has seen every row");
        Extent { offset: offset.unwrap_or_default(), len: len.unwrap_or_default() }
    }

    pub(super) fn key(&self, row: usize) -> Vec<u8> {
        self.places.key.and_then(|column| self.table.cell(row, column)).unwrap_or_default().into()
    }

    pub(super) fn attributes(&self, row: usize) -> Vec<Option<AttributeValue>> {
        self.table.attributes(row)
    }

    pub(super) fn is_keyed(&self) -> bool {
        self.places.key.is_some()
    }

    /// Where a row is, for messages.
    pub(super) fn shown(&self, row: usize) -> String {
        let (list, line) = self.table.place(row);
        format!("line {line} of {}", shown_path(list))
    }

    /// Whether the samples of each file come in the order in which they are there.
    pub(super) fn are_ascending(&self) -> bool {
        let ascend = |rows: &Range<usize>| {
            rows.clone().map(|row| self.extent(row)).is_sorted_by_key(|extent| (extent.offset, extent.len))
        };
        self.parts.iter().all(ascend)
    }

    /// Two rows whose samples share bytes, in words; the first there are.
    pub(super) fn overlap(&self) -> Option<String> {
        self.parts.iter().find_map(|rows| {
            let mut sorted: Vec<(u64, u64, usize)> = rows
                .clone()
                .map(|row| {
                    let Extent { offset, len } = self.extent(row);
                    (offset, len, row)
                })
                .collect();
            sorted.sort_unstable();
            let pair = sorted.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0)?;
            let shown =
                |&(offset, len, row): &(u64, u64, usize)| format!("{}: {offset}..{}", self.shown(row), offset + len);
            Some(format!("two of its samples overlap ({}; {})", shown(&pair[0]), shown(&pair[1])))
        })
    }

    /// Of the lists' content.
    pub(super) fn hash(&self) -> u64 {
        self.table.hash()
    }

    fn path(&self, row: usize) -> PathBuf {
        self.folder.join(OsStr::from_bytes(self.table.path(row)))
    }

    fn check(&self, row: usize) -> Result<(), SourceError> {
        let offset = self.needed(row, self.places.offset, "offset")?;
        let len = self.needed(row, self.places.length, "length")?;
        // A file's length is a number with a sign.
        if offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(self.table.refused_row(row, format!("no file has {len} bytes at {offset}")));
        }
        let Some(column) = self.places.key else { return Ok(()) };
        match self.table.cell(row, column).map_or(0, str::len) {
            0 => Err(self.table.refused_row(row, "it has no key, but other rows have")),
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

    /// The table is sorted by path: runs of one path, in the order of their first rows.
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
