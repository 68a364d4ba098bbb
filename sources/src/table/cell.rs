//! The type of a cell, and the type of a column from those of its cells.
//!
//! ```text
//! all true/false    attribute, bool        all integers    attribute, int64; uint64 where one is too large for that
//! all numbers       attribute, float64     anything else   text, a field
//! ```
//!
//! Only numbers in canonical form count: `007` and `+1` are text, so that an identifier keeps its zeros.

use super::rows::Line;

/// The type of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellType {
    Truth,
    /// An integer of 64 bits with a sign.
    Whole,
    /// An integer of 64 bits that fits only without a sign.
    Unsigned,
    /// An integer that does not fit.
    Wide,
    Number,
    Text,
}

impl CellType {
    /// The type of a cell in CSV or TSV, which have only text.
    pub(super) fn of(text: &str) -> Self {
        match text.strip_prefix('-').unwrap_or(text) {
            "true" | "True" | "TRUE" | "false" | "False" | "FALSE" if !text.starts_with('-') => Self::Truth,
            "nan" | "NaN" | "inf" | "Infinity" => Self::Number,
            digits if is_integer(digits) => Self::of_integer(text),
            digits if is_decimal(digits) && text.parse::<f64>().is_ok_and(f64::is_finite) => Self::Number,
            _ => Self::Text,
        }
    }

    /// The type of an integer, by its size.
    pub(super) fn of_integer(text: &str) -> Self {
        if text.parse::<i64>().is_ok() {
            Self::Whole
        } else if text.parse::<u64>().is_ok() {
            Self::Unsigned
        } else {
            Self::Wide
        }
    }
}

/// Whether a float64 equals an integer.
fn is_exact(text: &str) -> bool {
    // All of 15 digits are.
    text.len() <= 15 || text.parse::<f64>().is_ok_and(|float| format!("{float:.0}") == text)
}

fn is_integer(digits: &str) -> bool {
    let canonical = digits == "0" || !digits.starts_with('0');
    canonical && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_decimal(text: &str) -> bool {
    match text.as_bytes() {
        [b'0', second, ..] => !second.is_ascii_digit(),
        [first, ..] => first.is_ascii_digit() || *first == b'.',
        [] => false,
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Truth,
    Whole,
    Unsigned,
    Number,
    Text,
}

/// What a column with fractions is.
pub(super) const FLOAT: &str = "a float64";

/// An integer that does not fit the type of its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfit<'a> {
    pub(super) line: Line,
    pub(super) text: &'a str,
    /// What the other cells are.
    pub(super) kind: &'static str,
}

impl<'a> Unfit<'a> {
    fn of((line, text): &'a (Line, String), kind: &'static str) -> Self {
        Self { line: *line, text, kind }
    }
}

/// Which types of cells a column has so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    truth: bool,
    whole: bool,
    number: bool,
    /// The line of the first text, and the text.
    text: Option<(Line, String)>,
    /// Whether an integer has a sign.
    sign: bool,
    /// The line of the first integer that fits only without a sign, and the integer.
    unsigned: Option<(Line, String)>,
    /// The line of the first integer that does not fit, and the integer.
    wide: Option<(Line, String)>,
    /// The line of the first integer that no float64 equals, and the integer.
    inexact: Option<(Line, String)>,
}

impl Evidence {
    pub(super) fn add(&mut self, cell_type: CellType, text: &str, line: Line) {
        let is_integer = matches!(cell_type, CellType::Whole | CellType::Unsigned | CellType::Wide);
        if is_integer && self.inexact.is_none() && !is_exact(text) {
            self.inexact = Some((line, text.to_owned()));
        }
        match cell_type {
            CellType::Truth => self.truth = true,
            CellType::Whole => {
                self.whole = true;
                self.sign |= text.starts_with('-');
            }
            CellType::Number => self.number = true,
            CellType::Text => _ = self.text.get_or_insert_with(|| (line, text.to_owned())),
            CellType::Unsigned => _ = self.unsigned.get_or_insert_with(|| (line, text.to_owned())),
            CellType::Wide => _ = self.wide.get_or_insert_with(|| (line, text.to_owned())),
        }
    }

    /// The line of the first text, and the text, where other cells are numbers.
    pub(super) fn stray_text(&self) -> Option<&(Line, String)> {
        self.text.as_ref().filter(|_| self.is_numeric())
    }

    fn is_numeric(&self) -> bool {
        self.whole || self.number || self.unsigned.is_some() || self.wide.is_some()
    }

    /// The type of the column; `None` where all cells were empty.
    ///
    /// # Errors
    /// Where all are integers and one does not fit, or there are fractions, too, and an integer is none exactly.
    pub(super) fn kind(&self) -> Result<Option<ColumnType>, Unfit<'_>> {
        let numeric = self.is_numeric();
        Ok(match self {
            _ if self.text.is_some() || (self.truth && numeric) => Some(ColumnType::Text),
            _ if self.truth => Some(ColumnType::Truth),
            Self { number: true, inexact: Some(inexact), .. } => return Err(Unfit::of(inexact, FLOAT)),
            _ if self.number => Some(ColumnType::Number),
            Self { wide: Some(wide), unsigned: None, .. } => return Err(Unfit::of(wide, "an int64")),
            Self { unsigned: Some(unsigned), sign: true, .. } => return Err(Unfit::of(unsigned, "an int64")),
            Self { wide: Some(wide), .. } => return Err(Unfit::of(wide, "a uint64")),
            _ if self.unsigned.is_some() => Some(ColumnType::Unsigned),
            _ if self.whole => Some(ColumnType::Whole),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_cell_is_that_of_its_canonical_form() {
        let cases = [
            (CellType::Truth, &["true", "False", "TRUE"][..]),
            (CellType::Whole, &["0", "-1", "9223372036854775807", "-9223372036854775808"]),
            (CellType::Unsigned, &["9223372036854775808", "18446744073709551615"]),
            (CellType::Wide, &["18446744073709551616", "-9223372036854775809"]),
            (CellType::Number, &["0.5", "-.5", "1e-3", "1E+30", "nan", "-inf", "-0.0"]),
            (
                CellType::Text,
                &["007", "+1", "1 ", "-", "", "--1", "-true", "00.5", "1e999", "0x10", "1_000", "tRUE", "é"],
            ),
        ];
        for (cell_type, texts) in cases {
            texts.iter().for_each(|text| assert_eq!(CellType::of(text), cell_type, "{text}"));
        }
    }

    #[test]
    fn the_type_of_a_column_fits_all_of_its_cells() {
        let kind = |texts: &[&str]| {
            let mut evidence = Evidence::default();
            texts.iter().for_each(|text| evidence.add(CellType::of(text), text, Line { file: 0, number: 7 }));
            evidence.kind().map_err(|unfit| (unfit.line.number, unfit.text.to_owned(), unfit.kind))
        };
        assert_eq!(kind(&[]), Ok(None));
        assert_eq!(kind(&["1", "-2"]), Ok(Some(ColumnType::Whole)));
        assert_eq!(kind(&["1", "2.5"]), Ok(Some(ColumnType::Number)));
        assert_eq!(kind(&["1", "true"]), Ok(Some(ColumnType::Text)));
        assert_eq!(kind(&["true", "false"]), Ok(Some(ColumnType::Truth)));
        assert_eq!(kind(&["1", "x"]), Ok(Some(ColumnType::Text)));
        assert_eq!(kind(&["1", "18446744073709551615"]), Ok(Some(ColumnType::Unsigned)));
        let unfit = |text: &str, kind| Err((7, text.to_owned(), kind));
        assert_eq!(kind(&["-1", "18446744073709551615"]), unfit("18446744073709551615", "an int64"));
        assert_eq!(kind(&["18446744073709551615", "-0"]), unfit("18446744073709551615", "an int64"));
        assert_eq!(kind(&["1", "18446744073709551616"]), unfit("18446744073709551616", "an int64"));
        assert_eq!(kind(&["9223372036854775808", "18446744073709551616"]), unfit("18446744073709551616", "a uint64"));
        assert_eq!(kind(&["1.5", "18446744073709551615"]), unfit("18446744073709551615", FLOAT));
        assert_eq!(kind(&["9007199254740993", "1.5"]), unfit("9007199254740993", FLOAT));
        assert_eq!(kind(&["1.5", "-9007199254740992", "18446744073709551616"]), Ok(Some(ColumnType::Number)));
    }
}
