//! Tests of the crate's interface.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pictures;
