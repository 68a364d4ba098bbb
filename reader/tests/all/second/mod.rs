//! What the comparison with the second reader needs: datasets of every kind, and a Python that answers questions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod listing;
mod python;
mod recipe;

pub(crate) use listing::{crc32, listing};
pub(crate) use python::{Answer, Python, Question};
pub(crate) use recipe::{Packed, Recipe};
