//! Ctrl-C: the first one requests the command to stop, the second one ends the process.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

/// The exit status of an interrupted command: 128 plus the number of the signal.
pub(crate) const STATUS: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// The user wants to stop. A command made of fallible steps ends with this error, and removes what it made.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Installs the handler for Ctrl-C. Called once, before the command runs.
///
/// # Errors
/// If the system refuses a signal handler.
pub(crate) fn install() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(STATUS));
        }
    })
    .context("cannot install a handler for Ctrl-C")
}

/// Whether the user wants to stop. A long command checks this between batches, removes what it started and returns
/// [`Exit::Interrupted`](crate::Exit::Interrupted).
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Returns an error if the user wants to stop.
///
/// # Errors
/// [`Interrupted`].
pub(crate) fn check_interrupt() -> anyhow::Result<()> {
    if requested() { Err(Interrupted.into()) } else { Ok(()) }
}
