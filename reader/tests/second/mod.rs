//! What the comparison with the second reader needs: datasets of every kind, and a Python that answers questions.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test file uses its part, and may fail"
)]

mod listing;
mod python;
mod recipe;

pub(crate) use listing::{crc32, listing};
pub(crate) use python::{Answer, Python, Question};
pub(crate) use recipe::{Packed, Recipe};
