//! The grainstore command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(grainstore_cli::run(std::env::args_os()))
}
