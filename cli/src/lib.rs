//! The grainstore command: packs, inspects and reads datasets.
//!
//! stdout is for data and can be piped; stderr is for messages. A command is a file in `commands`: arguments, work,
//! output. This is a library, so that the Python package can include the same command without a second copy of
//! everything below it.
#![forbid(unsafe_code)]

mod bench;
mod choices;
mod clock;
mod cold;
mod commands;
mod demo;
mod epoch;
mod errors;
mod external;
mod filesystem;
mod hints;
mod histogram;
mod interrupt;
mod log;
mod output_file;
mod packing;
mod plan;
mod printer;
mod random;
mod reports;
mod sizes;
mod stats;
mod time;

pub use reports::{Listener, Report, Reports};

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;

use clap::Parser;
use grainstore_format::escape_controls;

use commands::Command;
use external::External;
use log::LogLevel;
use printer::{ClosedPipe, Printer, Settings};

/// Pack a training dataset once, then read any sample in one I/O and any epoch in a fresh shuffled order
#[derive(Parser)]
#[command(name = "grainstore", version, arg_required_else_help = true, after_help = EXIT_HELP)]
struct Cli {
    /// Print nothing on stderr except warnings and errors
    #[arg(long, global = true, display_order = 900)]
    quiet: bool,
    /// Print on stderr what the libraries report: epochs and conversions (info), fallbacks and slow reads (warn);
    /// GRAINSTORE_LOG=LEVEL in the environment does the same
    #[arg(long, global = true, value_enum, value_name = "LEVEL", display_order = 895)]
    log: Option<LogLevel>,
    #[command(flatten)]
    external: External,
    #[command(subcommand)]
    command: Command,
}

const EXIT_HELP: &str = "\
Exit status: 0 done, 1 the answer is no (verify found damage, get found no such key), 2 could not do it, 130 interrupted.
What is skipped on request (epoch --skip-damaged, convert --skip-bad) is reported on stderr, and the status is still 0.
Data goes to stdout, everything else to stderr. NO_COLOR is honoured.";

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Done,
    /// The answer is no: damage was found, or there is no such key.
    No,
    /// The command failed; the reason was printed to stderr.
    Failed,
    /// Ctrl-C; the unfinished output has been removed.
    Interrupted,
    /// Ctrl-C; the finished part is kept, and a message names the command that continues.
    Kept,
}

/// Runs the command with these arguments, the first of which is its name, and returns the exit status. It installs a
/// handler for Ctrl-C, so it is called once in a process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    silence_contained_panics();
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe while printing help is not a failure.
            let _ = print_help(&error);
            return if error.use_stderr() { Exit::Failed.status() } else { Exit::Done.status() };
        }
    };
    let printer = Printer::new(Settings { quiet: cli.quiet, json: cli.command.json() });
    let exit = work(&cli, &printer).unwrap_or_else(|error| {
        if error.is::<ClosedPipe>() {
            return Exit::Done;
        }
        printer.error(&error);
        Exit::Failed
    });
    exit.status()
}

/// Prints help, or what is wrong with the arguments. Arguments may be file names that a shell expanded: one that
/// contains control characters is printed escaped, without colours.
fn print_help(error: &clap::Error) -> std::io::Result<()> {
    let text = error.render().to_string();
    match escape_controls(&text) {
        Cow::Borrowed(_) => error.print(),
        Cow::Owned(escaped) if error.use_stderr() => std::io::stderr().write_all(escaped.as_bytes()),
        Cow::Owned(escaped) => std::io::stdout().write_all(escaped.as_bytes()),
    }
}

/// A panic of the Parquet decoder is reported as damage to the file; its own message means nothing to the user.
fn silence_contained_panics() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !grainstore_sources::parquet::is_contained() {
            default_hook(panic);
        }
    }));
}

fn work(cli: &Cli, printer: &Printer) -> anyhow::Result<Exit> {
    interrupt::install()?;
    log::install(cli.log)?;
    let exit = cli.command.run(printer, cli.external)?;
    if exit == Exit::Interrupted {
        printer.warn("interrupted");
    }
    // If the reader closes the pipe early, the exit status still carries the answer.
    match printer.flush() {
        Err(error) if !error.is::<ClosedPipe>() => Err(error),
        _ => Ok(exit),
    }
}

impl Exit {
    fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Failed => 2,
            Self::Interrupted | Self::Kept => interrupt::STATUS,
        }
    }
}
