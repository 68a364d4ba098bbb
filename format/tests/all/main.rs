//! The tests of the format in one program, so that their dependencies are linked once.

mod directory;
mod header_and_footer;
mod manifest;
mod specification;
