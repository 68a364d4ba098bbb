//! What a cell says, and what kind of column its cells make together.
//!
//! ```text
//! all true/false    attribute, bool        all integers    attribute, int64
//! all numbers       attribute, float64     anything else   text, a field
//! ```
//!
//! A number is written the way a computer writes it: `007` and `+1` are text, or an identifier would lose its zeros.

use super::rows::Line;

/// What a cell says by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Truth,
    /// An integer of 64 bits with a sign.
    Whole,
    /// An integer that does not fit.
    Wide,
    Number,
    Text,
}

impl Says {
    /// What is written in a table that has nothing but text.
    pub(super) fn of(text: &str) -> Self {
        match text.strip_prefix('-').unwrap_or(text) {
            "true" | "True" | "TRUE" | "false" | "False" | "FALSE" if !text.starts_with('-') => Self::Truth,
            "nan" | "NaN" | "inf" | "Infinity" => Self::Number,
            digits if is_integer(digits) => Self::of_integer(text),
            digits if is_decimal(digits) && text.parse::<f64>().is_ok_and(f64::is_finite) => Self::Number,
            _ => Self::Text,
        }
    }

    /// What an integer says by its size.
    pub(super) fn of_integer(text: &str) -> Self {
        if text.parse::<i64>().is_ok() { Self::Whole } else { Self::Wide }
    }
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

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellKind {
    Truth,
    Whole,
    Number,
    Text,
}

/// What the cells of a column have said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    truth: bool,
    whole: bool,
    number: bool,
    text: bool,
    /// The line of the first integer that does not fit, and the integer.
    wide: Option<(Line, String)>,
}

impl Evidence {
    pub(super) fn add(&mut self, says: Says, text: &str, line: Line) {
        match says {
            Says::Truth => self.truth = true,
            Says::Whole => self.whole = true,
            Says::Number => self.number = true,
            Says::Text => self.text = true,
            Says::Wide if self.wide.is_none() => self.wide = Some((line, text.to_owned())),
            Says::Wide => {}
        }
    }

    /// The kind of the column; `None` where all cells were empty.
    ///
    /// # Errors
    /// The line and the integer, where all are integers and one does not fit.
    pub(super) fn kind(&self) -> Result<Option<CellKind>, (Line, &str)> {
        let numeric = self.whole || self.number || self.wide.is_some();
        Ok(match self {
            _ if self.text || (self.truth && numeric) => Some(CellKind::Text),
            _ if self.truth => Some(CellKind::Truth),
            _ if self.number => Some(CellKind::Number),
            Self { wide: Some((line, text)), .. } => return Err((*line, text)),
            _ if self.whole => Some(CellKind::Whole),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_says_what_a_computer_would_have_meant_by_it() {
        let cases = [
            (Says::Truth, &["true", "False", "TRUE"][..]),
            (Says::Whole, &["0", "-1", "9223372036854775807", "-9223372036854775808"]),
            (Says::Wide, &["9223372036854775808", "-9223372036854775809"]),
            (Says::Number, &["0.5", "-.5", "1e-3", "1E+30", "nan", "-inf", "-0.0"]),
            (Says::Text, &["007", "+1", "1 ", "-", "", "--1", "-true", "00.5", "1e999", "0x10", "1_000", "tRUE", "é"]),
        ];
        for (says, texts) in cases {
            texts.iter().for_each(|text| assert_eq!(Says::of(text), says, "{text}"));
        }
    }

    #[test]
    fn a_column_is_what_all_of_its_cells_are() {
        let kind = |texts: &[&str]| {
            let mut evidence = Evidence::default();
            texts.iter().for_each(|text| evidence.add(Says::of(text), text, Line { file: 0, number: 7 }));
            evidence.kind().map_err(|(line, text)| (line.number, text.to_owned()))
        };
        assert_eq!(kind(&[]), Ok(None));
        assert_eq!(kind(&["1", "-2"]), Ok(Some(CellKind::Whole)));
        assert_eq!(kind(&["1", "2.5"]), Ok(Some(CellKind::Number)));
        assert_eq!(kind(&["1", "true"]), Ok(Some(CellKind::Text)));
        assert_eq!(kind(&["true", "false"]), Ok(Some(CellKind::Truth)));
        assert_eq!(kind(&["1", "x"]), Ok(Some(CellKind::Text)));
        assert_eq!(kind(&["1", "18446744073709551615"]), Err((7, "18446744073709551615".into())));
        assert_eq!(kind(&["1.5", "18446744073709551615"]), Ok(Some(CellKind::Number)));
    }
}
