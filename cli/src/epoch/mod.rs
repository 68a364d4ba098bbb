//! The parts of `grainstore epoch`: what was measured, as a document for programs and in words for people.

pub(crate) mod document;
mod summary;
