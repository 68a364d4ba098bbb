//! The parts of `grainstore plan`: the plan, as a document for programs and as text for people.

mod classes;
pub(crate) mod document;
pub(crate) mod mixing;
