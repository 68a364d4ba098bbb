//! The conformance corpus: files that corpus/make.py forges from the pages alone, with what each must give. The crates
//! and the second reader run all of it. corpus/README.md explains the tables.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod cases;
mod orders;
mod shown;
mod states;
mod tree;

use std::path::{Path, PathBuf};

use grainstore_format::FormatError;
use grainstore_reader::{IoChoice, ReadError, ReaderOptions};
use grainstore_store::StoreError;
use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus");

fn root() -> &'static Path {
    Path::new(ROOT)
}

/// A table of the corpus: `expected.json` or `orders.json`.
fn table(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(root().join(name)).unwrap()).unwrap()
}

/// The elements of a list of the table.
fn lines<'a>(table: &'a Value, name: &str) -> &'a [Value] {
    let lines = table[name].as_array().unwrap();
    assert!(!lines.is_empty(), "{name}");
    lines
}

/// One thread and no cache: the cases are small and many.
fn reader_options(generation: Option<usize>, allow_external: bool) -> ReaderOptions {
    ReaderOptions { io: IoChoice::Buffered, threads: 1, generation, allow_external, ..ReaderOptions::default() }
}

/// The paths of the members that a line of `orders.json` reads.
fn members(line: &Value) -> Vec<PathBuf> {
    line["members"].as_array().unwrap().iter().map(|path| root().join(path.as_str().unwrap())).collect()
}

/// How the tables call the outcome of a call.
fn outcome<T>(result: &Result<T, ReadError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(ReadError::Store(error)) => store_outcome(error),
        Err(_) => "damaged",
    }
}

/// How the tables call an error of the store. A missing file is none of the outcomes that they have: all files of a
/// case are there, except those that its invalid path cannot name.
fn store_outcome(error: &StoreError) -> &'static str {
    match error {
        error if error.is_other_version() => "newer",
        StoreError::NotADataset { .. } | StoreError::Format { source: FormatError::NotGrainstore { .. }, .. } => {
            "not_grainstore"
        }
        StoreError::Outside { .. } => "refused",
        StoreError::NotFound { .. } => "missing",
        StoreError::Io { .. } => "io",
        _ => "damaged",
    }
}

/// Whether an outcome is the expected one, or one of several.
fn allows(expected: &Value, found: &str) -> bool {
    match expected {
        Value::Array(several) => several.iter().any(|one| one == found),
        one => one == found,
    }
}
