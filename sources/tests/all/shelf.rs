//! A temporary folder of files. The tests of the converters use this file too.

#![allow(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::fs;
use std::path::PathBuf;

pub(crate) struct Shelf(tempfile::TempDir);

impl Shelf {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}
