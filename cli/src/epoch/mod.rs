//! The parts of `grainstore epoch`, and what `grainstore plan` has in common with it: the flags that decide the order,
//! the file of a state, what was measured, as a document for programs and in words for people.

pub(crate) mod datasets;
pub(crate) mod document;
pub(crate) mod order_options;
pub(crate) mod skipped;
pub(crate) mod state_file;
mod summary;
