//! All output of the program: data goes to stdout, messages to stderr.
//!
//! Data is buffered; a closed pipe ends the command quietly. Messages are notes (silenced by `--quiet`), warnings,
//! hints and errors. Progress bars are shown only if stderr is a terminal and neither `--quiet` nor `--json` is set. No
//! colours are used, so no information depends on colour.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, Read, Stdout, Write};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use grainstore_format::{escape_controls, escape_json};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;

use crate::errors::on_one_line;
use crate::hints::hint_of;

/// The version of the JSON documents. It grows when a member is removed or changes its meaning, not when one is added;
/// docs/json.md describes them.
const SCHEMA_VERSION: u32 = 1;

/// A document with its version.
#[derive(Serialize)]
struct Versioned<'a, T: Serialize> {
    schema_version: u32,
    #[serde(flatten)]
    document: &'a T,
}

impl<'a, T: Serialize> Versioned<'a, T> {
    fn of(document: &'a T) -> Self {
        Self { schema_version: SCHEMA_VERSION, document }
    }
}

/// Which messages the flags allow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    /// `--quiet`: no notes, no progress.
    pub(crate) quiet: bool,
    /// `--json`: no progress.
    pub(crate) json: bool,
}

/// Prints data and messages. Shared by reference; threads may use it at the same time.
pub(crate) struct Printer {
    settings: Settings,
    stdout: Mutex<BufWriter<Stdout>>,
    stdout_is_terminal: bool,
    bars: MultiProgress,
}

/// What a progress bar counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Bytes, shown as sizes.
    Bytes,
    /// Things with this name, in the plural: "samples".
    Things(&'static str),
    /// Steps that each take long, named by the message.
    Steps,
}

/// The reader of stdout has closed it: an end, not a failure.
#[derive(Debug)]
pub(crate) struct ClosedPipe;

impl Display for ClosedPipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("stdout was closed")
    }
}

impl std::error::Error for ClosedPipe {}

impl Printer {
    /// A printer for this process.
    pub(crate) fn new(settings: Settings) -> Self {
        let silent = settings.quiet || settings.json || !io::stderr().is_terminal();
        let target = if silent { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Self {
            settings,
            stdout: Mutex::new(BufWriter::with_capacity(1 << 16, io::stdout())),
            stdout_is_terminal: io::stdout().is_terminal(),
            bars: MultiProgress::with_draw_target(target),
        }
    }

    /// Prints a line of data to stdout.
    ///
    /// # Errors
    /// [`ClosedPipe`] if nobody reads any more, which commands pass on; otherwise the error of the system.
    pub(crate) fn line(&self, text: impl Display) -> anyhow::Result<()> {
        self.write(|stdout| writeln!(stdout, "{text}"))
    }

    /// Writes bytes of data to stdout as they are.
    ///
    /// # Errors
    /// As [`Printer::line`].
    pub(crate) fn bytes(&self, bytes: &[u8]) -> anyhow::Result<()> {
        self.write(|stdout| stdout.write_all(bytes))
    }

    /// Copies data to stdout until it ends.
    ///
    /// # Errors
    /// As [`Printer::line`], and if `data` cannot be read.
    pub(crate) fn copy(&self, data: &mut dyn Read) -> anyhow::Result<()> {
        let mut piece = vec![0; 1 << 20];
        loop {
            match data.read(&mut piece)? {
                0 => return Ok(()),
                len => self.bytes(&piece[..len])?,
            }
        }
    }

    /// Prints one JSON document, an object, indented; its first member is `schema_version`.
    ///
    /// # Errors
    /// As [`Printer::line`].
    pub(crate) fn json(&self, document: &impl Serialize) -> anyhow::Result<()> {
        self.line(escape_json(&serde_json::to_string_pretty(&Versioned::of(document))?))
    }

    /// Prints one JSON document, an object, on a line; its first member is `schema_version`.
    ///
    /// # Errors
    /// As [`Printer::line`].
    pub(crate) fn json_line(&self, document: &impl Serialize) -> anyhow::Result<()> {
        self.line(escape_json(&serde_json::to_string(&Versioned::of(document))?))
    }

    /// Flushes buffered data. `main` does it when a command is done.
    ///
    /// # Errors
    /// As [`Printer::line`].
    pub(crate) fn flush(&self) -> anyhow::Result<()> {
        self.write(|stdout| stdout.flush())
    }

    /// Prints a note on stderr; not with `--quiet`.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.settings.quiet {
            self.message("", &text);
        }
    }

    /// Prints a warning on stderr: something is wrong, and the command continues or has stopped.
    pub(crate) fn warn(&self, text: impl Display) {
        self.message("grainstore: ", &text);
    }

    /// Names a flag or a command to try; at most one line below an error or a warning.
    pub(crate) fn hint(&self, text: impl Display) {
        self.message("hint: ", &text);
    }

    /// Prints on one line why the command failed, and on a second line what to try.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        self.message("grainstore: ", &on_one_line(error.as_ref()));
        if let Some(hint) = hint_of(error) {
            self.hint(hint);
        }
    }

    /// A progress bar over `total`, or a spinner if the total is unknown; hidden if progress is not to be shown. The
    /// caller moves it (`inc`, `set_position`), names the work (`set_message`) and ends it (`finish_and_clear`); it
    /// disappears on drop.
    pub(crate) fn progress(&self, counted: Counted, total: Option<u64>) -> ProgressBar {
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let bar = self.bars.add(bar.with_finish(indicatif::ProgressFinish::AndClear));
        bar.set_style(style(counted, total.is_some()));
        bar
    }

    fn write(&self, write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) -> anyhow::Result<()> {
        let result = self.above_bars(|| {
            let mut stdout = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
            write(&mut stdout)?;
            if self.stdout_is_terminal { stdout.flush() } else { Ok(()) }
        });
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ClosedPipe.into()),
            other => other.context("cannot write to stdout"),
        }
    }

    fn message(&self, prefix: &str, text: &impl Display) {
        // A closed stderr cannot be reported to anyone.
        let text = text.to_string();
        // Names are escaped when they enter a message; this catches what an error of another library quotes.
        let text = escape_controls(&text);
        let _ = self.above_bars(|| writeln!(io::stderr(), "{prefix}{text}"));
    }

    /// Hides the bars while a line is written, so that they do not mix on a terminal.
    fn above_bars<T>(&self, write: impl FnOnce() -> T) -> T {
        if self.bars.is_hidden() { write() } else { self.bars.suspend(write) }
    }
}

fn style(counted: Counted, has_total: bool) -> ProgressStyle {
    let template = match (counted, has_total) {
        (Counted::Bytes, true) => {
            "{msg} [{bar:30}] {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left".to_owned()
        }
        (Counted::Bytes, false) => "{msg} {spinner} {decimal_bytes}, {decimal_bytes_per_sec}".to_owned(),
        (Counted::Things(name), true) => {
            format!("{{msg}} [{{bar:30}}] {{pos}} of {{len}} {name}, {{rate}}, {{eta}} left")
        }
        (Counted::Steps, true) => "[{bar:30}] {pos} of {len} done, {msg} {spinner}".to_owned(),
        (Counted::Steps, false) => "{msg} {spinner}".to_owned(),
        (Counted::Things(name), false) => format!("{{msg}} {{spinner}} {{pos}} {name}, {{rate}}"),
    };
    // The templates are valid, which a test checks; a wrong one would only look different.
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ").with_key("rate", |state: &ProgressState, text: &mut dyn fmt::Write| {
        // The caller checks what was written, and nothing else can fail.
        let _ = write!(text, "{:.0}/s", state.per_sec());
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_has_a_legal_template() {
        for counted in [Counted::Bytes, Counted::Things("samples"), Counted::Steps] {
            for has_total in [true, false] {
                let bar = ProgressBar::with_draw_target(Some(9), ProgressDrawTarget::hidden());
                bar.set_style(style(counted, has_total));
                bar.inc(3);
                assert_eq!(bar.position(), 3);
            }
        }
    }

    #[test]
    fn a_bar_is_hidden_with_json() {
        let printer = Printer::new(Settings { quiet: false, json: true });
        assert!(printer.progress(Counted::Bytes, Some(1)).is_hidden());
    }
}
