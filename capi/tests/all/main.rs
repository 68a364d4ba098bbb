//! The C library, used from C, and its header.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test fails by panicking")]

mod header;
mod programs;
