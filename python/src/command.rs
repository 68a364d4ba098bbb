//! The command line, which comes with the package.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Run the command with these arguments, the first of which is its name; the exit status.
#[pyfunction]
#[pyo3(name = "_run_command")]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| grainstore_cli::run(arguments))
}
