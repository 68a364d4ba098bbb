//! The parts of `grainstore demo`: made-up images, a place to work in, a cold cache, plain files to compare with.

pub(crate) mod cold;
pub(crate) mod files;
pub(crate) mod filesystem;
pub(crate) mod images;
pub(crate) mod report;
pub(crate) mod steps;
pub(crate) mod workplace;

use std::fmt;

use crate::interrupt;

/// The user wants to stop. The demo ends with it, and takes away what it made.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Fails where the user wants to stop.
///
/// # Errors
/// [`Interrupted`].
pub(crate) fn check_interrupt() -> anyhow::Result<()> {
    if interrupt::requested() { Err(Interrupted.into()) } else { Ok(()) }
}
