//! What `convert`, `append` and `adopt` share: naming a source, progress, skipped samples, and hints.

pub(crate) mod bar;
pub(crate) mod hints;
pub(crate) mod left_out;
pub(crate) mod pack_args;
pub(crate) mod report;
pub(crate) mod source_args;
