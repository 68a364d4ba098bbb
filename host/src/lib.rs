//! What several crates need of the operating system, each thing in one place.
//!
//! - [`Home`] and [`Shared`]: whether this is still the process that made something, and a lock that a forked process
//!   can do without.
//! - [`open_regular`] and [`read_whole`]: files that are regular files, and that do not change while they are read.
//!
//! It knows nothing of datasets.
#![forbid(unsafe_code)]

mod process;
mod regular;

pub use process::{Home, Shared};
pub use regular::{open_regular, read_whole};
