//! The parts of `grainstore demo`: made-up files, a place to work in, what is measured, plain files to compare with.

pub(crate) mod files;
pub(crate) mod made;
pub(crate) mod measure;
pub(crate) mod report;
pub(crate) mod steps;
pub(crate) mod workplace;
