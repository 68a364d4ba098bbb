//! The parts of `grainstore plan`: what is planned, as a document for programs and in words for people.

mod classes;
pub(crate) mod document;
pub(crate) mod mixing;
