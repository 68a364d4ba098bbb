//! Shared by the comparisons with the second reader: datasets of every kind, and a Python process that runs commands.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod listing;
mod python;
mod recipe;

pub(crate) use listing::{crc32, listing};
pub(crate) use python::{Answer, Python, Question, REFERENCE};
pub(crate) use recipe::{Packed, Recipe};
