//! The table at the end of a benchmark, and the same as JSON.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot report fails, by panicking")]

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use crate::arguments::json_target;
use crate::baseline::AgainstFio;
use crate::fio::Fio;
use crate::{Ceiling, Rounds, Spread, is_test_run, round_count};

const HEADINGS: [&str; 8] = ["case", "measured", "target", "median", "min", "max", "huge pages", "verdict"];

/// The target of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

/// A line of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    case: String,
    measured: String,
    target: Option<Target>,
    reached: Option<Spread>,
    /// The same, divided by `fio` with huge pages.
    against_huge_pages: Option<Spread>,
    holds: Option<bool>,
}

/// The table of one benchmark.
#[derive(Debug, Serialize)]
pub struct Report {
    benchmark: &'static str,
    test_run: bool,
    rounds: usize,
    fio: String,
    fio_huge_pages: &'static str,
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// Writes to stderr, beside the results.
pub fn say(text: &str) {
    // stderr is closed: there is nowhere left to report to.
    let _ = writeln!(std::io::stderr(), "{text}");
}

impl Row {
    /// A claim: a number that has a target. It is not measured where `reached` is `None`.
    #[must_use]
    pub fn claim(case: &str, measured: &str, target: Target, reached: Option<Spread>) -> Self {
        let holds = reached.as_ref().filter(|_| !is_test_run()).map(|spread| target.holds(spread.median));
        let target = Some(target);
        Self { case: case.into(), measured: measured.into(), target, reached, against_huge_pages: None, holds }
    }

    /// A claim that is a ratio to `fio`.
    #[must_use]
    pub fn against_fio(case: &str, measured: &str, target: Target, ratio: AgainstFio) -> Self {
        Self { against_huge_pages: ratio.huge, ..Self::claim(case, measured, target, ratio.plain) }
    }

    /// A number without a target.
    #[must_use]
    pub fn fact(case: &str, measured: &str, reached: Option<Spread>) -> Self {
        let (case, measured) = (case.into(), measured.into());
        Self { case, measured, target: None, reached, against_huge_pages: None, holds: None }
    }

    fn cells(&self) -> [String; 8] {
        let spread = |spread: &Option<Spread>, number: fn(&Spread) -> f64| {
            spread.as_ref().map_or_else(|| "-".into(), |spread| shown(number(spread)))
        };
        [
            self.case.clone(),
            self.measured.clone(),
            self.target.map_or_else(String::new, Target::shown),
            spread(&self.reached, |spread| spread.median),
            spread(&self.reached, |spread| spread.min),
            spread(&self.reached, |spread| spread.max),
            self.against_huge_pages.as_ref().map_or_else(String::new, |spread| shown(spread.median)),
            self.verdict().into(),
        ]
    }

    fn verdict(&self) -> &'static str {
        match (self.target, self.holds) {
            (None, _) => "",
            (_, Some(true)) => "holds",
            (_, Some(false)) => "falls short",
            (_, None) if self.reached.is_none() => "not measured",
            (_, None) => "none",
        }
    }
}

impl Target {
    fn holds(self, number: f64) -> bool {
        match self {
            Self::AtLeast(least) => number >= least,
            Self::AtMost(most) => number <= most,
        }
    }

    fn shown(self) -> String {
        match self {
            Self::AtLeast(least) => format!(">= {}", shown(least)),
            Self::AtMost(most) => format!("<= {}", shown(most)),
        }
    }
}

impl Report {
    /// An empty table.
    #[must_use]
    pub fn new(benchmark: &'static str) -> Self {
        let (fio, fio_huge_pages) = match Fio::installed() {
            None => ("not installed".into(), "not available"),
            Some(fio) if fio.has_huge_pages => (fio.version.clone(), "available"),
            Some(fio) => (fio.version.clone(), "not available"),
        };
        let (test_run, rounds) = (is_test_run(), round_count());
        Self { benchmark, test_run, rounds, fio, fio_huge_pages, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a line, and prints it at once: the whole table is printed only at the end.
    pub fn add(&mut self, row: Row) {
        say(row.cells().map(|cell| cell.trim().to_owned()).join("  ").trim_end());
        self.rows.push(row);
    }

    /// Adds a sentence below the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Adds what `fio` reached before, between and after the rounds.
    pub fn add_device<T>(&mut self, case: &str, rounds: &Rounds<Ceiling, T>) {
        let plain = |number: fn(&crate::FioRun) -> f64| rounds.device(|ceiling| ceiling.plain.as_ref().map(number));
        self.add(Row::fact(case, "fio, MB/s", plain(|run| run.bytes_per_s / 1e6)));
        self.add(Row::fact(case, "fio, reads/s", plain(|run| run.reads_per_s)));
        self.add(Row::fact(case, "fio, mean latency, us", plain(|run| run.latency_s * 1e6)));
        self.add(Row::fact(case, "fio, CPU-s/GB", plain(|run| run.cpu_s_per_gb)));
        let huge = rounds.device(|ceiling| ceiling.huge.as_ref().map(|run| run.bytes_per_s / 1e6));
        if huge.is_some() {
            self.add(Row::fact(case, "fio with huge pages, MB/s", huge));
        }
    }

    /// Prints the table, and writes it as JSON if that was requested.
    ///
    /// # Panics
    /// If either is not possible.
    pub fn finish(self) {
        std::io::stdout().write_all(self.table().as_bytes()).unwrap();
        if let Some(target) = json_target() {
            let target = self.json_path(target);
            std::fs::write(&target, serde_json::to_string_pretty(&self).unwrap()).unwrap();
        }
    }

    fn json_path(&self, target: PathBuf) -> PathBuf {
        if target.is_dir() { target.join(format!("{}.json", self.benchmark)) } else { target }
    }

    fn table(&self) -> String {
        let kind = if self.test_run { "test run, no verdicts" } else { "median of the rounds" };
        let title = format!(
            "{}: {kind}; rounds: {}; fio: {}; fio with huge pages: {}\n",
            self.benchmark, self.rounds, self.fio, self.fio_huge_pages
        );
        let lines: Vec<[String; 8]> =
            std::iter::once(HEADINGS.map(String::from)).chain(self.rows.iter().map(Row::cells)).collect();
        let width = |column: usize| lines.iter().map(|cells| cells[column].len()).max().unwrap_or(0);
        let widths: [usize; 8] = std::array::from_fn(width);
        let body = lines.iter().map(|cells| line(cells, &widths));
        let notes = self.notes.iter().map(|note| format!("note: {note}\n"));
        std::iter::once(title).chain(body).chain(notes).collect()
    }
}

/// Words to the left, numbers to the right.
fn line(cells: &[String; 8], widths: &[usize; 8]) -> String {
    let padded = cells.iter().zip(widths).enumerate().map(|(column, (cell, &width))| match column {
        3..=6 => format!("{cell:>width$}"),
        _ => format!("{cell:<width$}"),
    });
    format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
}

/// Three significant digits, or more before the point.
fn shown(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_met_by_its_own_value() {
        assert!(Target::AtLeast(0.95).holds(0.95) && !Target::AtLeast(0.95).holds(0.949));
        assert!(Target::AtMost(1.1).holds(1.1) && !Target::AtMost(1.1).holds(1.101));
    }

    #[test]
    fn columns_stand_below_each_other_and_what_is_missing_is_a_dash() {
        let mut report = Report::new("table");
        report.add(Row::claim("512B", "rate", Target::AtLeast(0.95), None));
        report.add(Row::fact("110KB", "fio, MB/s", Spread::of([Some(1234.5), Some(99.0), Some(3.0)])));
        let table = report.table();
        let lines: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(lines[0], "case   measured   target    median    min   max  huge pages  verdict");
        assert_eq!(lines[1], "512B   rate       >= 0.950       -      -     -              not measured");
        assert_eq!(lines[2], "110KB  fio, MB/s              99.0  3.000  1234");
    }

    #[test]
    fn json_says_what_holds() {
        let row = Row { holds: Some(false), ..Row::claim("a", "b", Target::AtMost(0.2), Some(Spread::once(0.5))) };
        let json = serde_json::to_value(row).unwrap();
        assert_eq!(json["target"]["at_most"], 0.2);
        assert_eq!((&json["reached"]["median"], &json["holds"]), (&0.5.into(), &false.into()));
    }
}
