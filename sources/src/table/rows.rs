//! The rows of a table, in about as many bytes as its files have, sorted by path.
//!
//! ```text
//! row   path length | path | file | line | cell count | column | length | bytes | column | ...
//! ```
//!
//! Numbers are LEB128. Cells are stored as the text in the file, and empty cells are not stored. So a table of tens of
//! millions of rows takes about a dozen bytes a row more than its file, and the type of a column can be decided after
//! its last cell.

use std::ops::Range;

use grainstore_format::to_usize;
use xxhash_rust::xxh64::xxh64;

/// Rows sorted by path; those of one path in the order in which they were read.
#[derive(Debug, Default)]
pub(crate) struct TableRows {
    arena: Vec<u8>,
    /// Where each row begins.
    starts: Vec<usize>,
}

/// Where a row was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Index of the file among those that were read.
    pub(crate) file: usize,
    /// Counted from 1.
    pub(crate) number: u64,
}

/// A cell that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) column: usize,
    /// Where its text is; see [`TableRows::text`].
    text: Range<usize>,
}

impl TableRows {
    pub(crate) fn push<'a>(
        &mut self,
        path: &[u8],
        line: Line,
        cells: impl ExactSizeIterator<Item = (usize, &'a [u8])>,
    ) {
        self.starts.push(self.arena.len());
        self.push_bytes(path);
        self.push_number(line.file as u64);
        self.push_number(line.number);
        self.push_number(cells.len() as u64);
        for (column, text) in cells {
            self.push_number(column as u64);
            self.push_bytes(text);
        }
    }

    pub(super) fn sort(&mut self) {
        let Self { arena, starts } = self;
        starts.sort_unstable_by(|&a, &b| path_at(arena, a).cmp(path_at(arena, b)).then(a.cmp(&b)));
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn path(&self, row: usize) -> &[u8] {
        path_at(&self.arena, self.starts[row])
    }

    /// A number that increases from row to row in the order in which they were read.
    pub(super) fn turn(&self, row: usize) -> usize {
        self.starts[row]
    }

    pub(super) fn line(&self, row: usize) -> Line {
        let mut at = self.after_path(row);
        let file = to_usize(number(&self.arena, &mut at));
        Line { file, number: number(&self.arena, &mut at) }
    }

    /// The cells of a row that are not empty, in the order of columns.
    pub(super) fn cells(&self, row: usize) -> impl Iterator<Item = Cell> {
        let mut at = self.after_path(row);
        number(&self.arena, &mut at); // file
        number(&self.arena, &mut at); // line
        let count = number(&self.arena, &mut at);
        (0..count).map(move |_| {
            let column = to_usize(number(&self.arena, &mut at));
            let len = to_usize(number(&self.arena, &mut at));
            at += len;
            Cell { column, text: at - len..at }
        })
    }

    /// A hash of all rows, in the order in which they were read.
    pub(super) fn hash(&self) -> u64 {
        xxh64(&self.arena, 0)
    }

    fn after_path(&self, row: usize) -> usize {
        let mut at = self.starts[row];
        let path_len = to_usize(number(&self.arena, &mut at));
        at + path_len
    }

    pub(super) fn text(&self, cell: &Cell) -> &str {
        let text = std::str::from_utf8(&self.arena[cell.text.clone()]);
        // Called for every cell: an error here would make every caller fallible for what `push` has seen to.
        debug_assert!(text.is_ok(), "`push` copied the cell from a `str`");
        text.unwrap_or_default()
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        self.push_number(bytes.len() as u64);
        self.arena.extend_from_slice(bytes);
    }

    fn push_number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.arena.push(low_byte(number) | 0x80);
            number >>= 7;
        }
        self.arena.push(low_byte(number));
    }
}

fn low_byte(number: u64) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low
}

fn path_at(arena: &[u8], mut at: usize) -> &[u8] {
    let len = to_usize(number(arena, &mut at));
    &arena[at..at + len]
}

fn number(arena: &[u8], at: &mut usize) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    loop {
        let byte = arena[*at];
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_sorted_with_the_cells_that_are_not_empty() {
        let mut kept = TableRows::default();
        let long = "x".repeat(20_000);
        let rows = [("b", vec![(0, "1"), (300, long.as_str())]), ("a/b", vec![]), ("", vec![(1, "")])];
        for (number, (path, cells)) in (1..).zip(&rows) {
            kept.push(
                path.as_bytes(),
                Line { file: 1, number },
                cells.iter().map(|&(column, text)| (column, text.as_bytes())),
            );
        }
        kept.sort();
        let lines: Vec<Line> = (0..3).map(|row| kept.line(row)).collect();
        assert_eq!(lines, [3, 2, 1].map(|number| Line { file: 1, number }));
        let mut sorted = rows.to_vec();
        sorted.sort();
        assert_eq!(kept.len(), 3);
        for (row, (path, cells)) in sorted.into_iter().enumerate() {
            assert_eq!(kept.path(row), path.as_bytes());
            let found: Vec<(usize, String)> =
                kept.cells(row).map(|cell| (cell.column, kept.text(&cell).to_owned())).collect();
            assert_eq!(found, cells.into_iter().map(|(column, text)| (column, text.to_owned())).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rows_of_one_path_stay_in_the_order_in_which_they_came() {
        let mut kept = TableRows::default();
        for number in 1..100 {
            kept.push(if number % 2 == 0 { b"even" } else { b"odd" }, Line { file: 0, number }, [].into_iter());
        }
        kept.sort();
        let lines: Vec<u64> = (0..kept.len()).map(|row| kept.line(row).number).collect();
        assert_eq!(lines, (2..100).step_by(2).chain((1..100).step_by(2)).collect::<Vec<_>>());
    }
}
