//! The parts of `grainstore demo`: generated files, a folder to work in, measurements, plain files to compare with.

pub(crate) mod files;
pub(crate) mod made;
pub(crate) mod measure;
pub(crate) mod report;
pub(crate) mod steps;
pub(crate) mod workplace;
