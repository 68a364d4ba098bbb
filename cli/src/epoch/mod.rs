//! The parts of `grainstore epoch`, and what it shares with `grainstore plan`: the flags that decide the order, the
//! file of a state, and the results, as a document for programs and as text for people.

pub(crate) mod datasets;
pub(crate) mod document;
pub(crate) mod order_options;
pub(crate) mod skipped;
pub(crate) mod state_file;
mod summary;
