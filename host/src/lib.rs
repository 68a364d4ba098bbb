//! Functions of the operating system that several crates use.
//!
//! - [`ProcessId`] and [`ForkLock`]: whether this is still the process that made something, and a lock that a forked
//!   process never waits for.
//! - [`open_regular`] and [`read_whole`]: regular files only, and an error if one changes while it is read.
//! - [`FreeMemory`]: how much memory the page cache may take.
//! - [`SteadyFile`]: a long file that is synced while it is written.
//! - [`replace_file`], [`rename_new`], [`sync_directory`]: files that appear only when they are whole.
//!
//! This crate knows nothing about datasets.
#![forbid(unsafe_code)]

mod free_memory;
mod process;
mod regular;
mod replace;
mod steady;

pub use free_memory::FreeMemory;
pub use process::{ForkLock, ProcessId};
pub use regular::{NotRegular, open_regular, read_whole};
pub use replace::{Durability, create_beside, directory_of, rename_new, replace_file, sync_directory};
pub use steady::SteadyFile;
