//! The parts of `grainstore demo`: made-up images, a place to work in, plain files to compare with.

pub(crate) mod files;
pub(crate) mod images;
pub(crate) mod report;
pub(crate) mod steps;
pub(crate) mod workplace;
