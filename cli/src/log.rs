//! What the libraries report through `tracing`, as lines on stderr: `--log LEVEL`, or GRAINSTORE_LOG in the environment.
//!
//! Without a level nothing is installed, and the libraries skip their reports.

use std::io::{self, Write as _};

use anyhow::anyhow;
use clap::ValueEnum;
use grainstore_format::escape_controls;
use tracing::Level;
use tracing::level_filters::LevelFilter;

use crate::reports::{Listener, Report, Reports};

/// The environment variable with the same effect as the flag.
const VARIABLE: &str = "GRAINSTORE_LOG";

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What went wrong
    Error,
    /// What works in another way than was intended, such as reading without io_uring, or slowly
    Warn,
    /// Epochs and conversions that begin and end
    Info,
    /// Every dataset that is opened, and how it is read
    Debug,
}

/// Prints what the libraries report from now on, if the flag or the environment asks for it.
///
/// # Errors
/// If the environment has something that is not a level.
pub(crate) fn install(flag: Option<LogLevel>) -> anyhow::Result<()> {
    let Some(level) = flag.map_or_else(from_environment, |level| Ok(Some(level)))? else { return Ok(()) };
    // Somebody else may listen already, in a process that includes this library: then they go on.
    let _ = tracing::subscriber::set_global_default(Reports::to(Lines(level.level())));
    Ok(())
}

fn from_environment() -> anyhow::Result<Option<LogLevel>> {
    match std::env::var(VARIABLE) {
        Ok(name) if !name.is_empty() => {
            let level = LogLevel::from_str(&name, true);
            level.map(Some).map_err(|_| anyhow!("{VARIABLE} is {name:?}, expected error, warn, info or debug"))
        }
        _ => Ok(None),
    }
}

impl LogLevel {
    fn level(self) -> Level {
        match self {
            Self::Error => Level::ERROR,
            Self::Warn => Level::WARN,
            Self::Info => Level::INFO,
            Self::Debug => Level::DEBUG,
        }
    }
}

/// Prints reports on stderr.
struct Lines(Level);

impl Listener for Lines {
    fn level(&self) -> LevelFilter {
        LevelFilter::from_level(self.0)
    }

    fn report(&self, report: Report<'_>) {
        let name = report.level.as_str().to_ascii_lowercase();
        // A closed stderr cannot be reported to anyone.
        let _ = writeln!(io::stderr(), "{name}: {}", escape_controls(report.text));
    }
}
