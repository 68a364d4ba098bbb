//! The conformance corpus: files that corpus/make.py forges from the pages alone, with what each must give.
//! corpus/README.md explains the tables.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod tree;

use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus");

fn root() -> &'static Path {
    Path::new(ROOT)
}
