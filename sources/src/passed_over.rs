//! A source of shards that says which files of their folders are none of them.

use std::path::{Path, PathBuf};

use grainstore_format::{Metadata, shown_path};

use crate::{Bad, Blocks, Layout, Part, Samples, Skipped, Source};

/// Files that are named; of the others only the number is said.
const SHOWN_MAX: usize = 5;

pub(crate) struct PassedOver {
    source: Box<dyn Source>,
    warning: String,
}

impl PassedOver {
    /// `source` itself where `files` is empty.
    pub(crate) fn over(source: Box<dyn Source>, files: &[PathBuf]) -> Box<dyn Source> {
        if files.is_empty() {
            return source;
        }
        let name = |path: &PathBuf| shown_path(path.file_name().map_or(path.as_path(), Path::new));
        let mut names: Vec<String> = files.iter().take(SHOWN_MAX).map(name).collect();
        if files.len() > SHOWN_MAX {
            names.push(format!("{} more", files.len() - SHOWN_MAX));
        }
        let (kind, names) = (source.kind(), names.join(", "));
        let warning = format!("files that lie among the shards and are no {kind} are NOT packed: {names}");
        Box::new(Self { source, warning })
    }
}

impl Source for PassedOver {
    fn kind(&self) -> &'static str {
        self.source.kind()
    }
    fn origins(&self) -> &[PathBuf] {
        self.source.origins()
    }
    fn metadata(&self) -> &Metadata {
        self.source.metadata()
    }
    fn is_keyed(&self) -> bool {
        self.source.is_keyed()
    }
    fn parts(&self) -> &[Part] {
        self.source.parts()
    }
    fn has_distinct_keys(&self) -> bool {
        self.source.has_distinct_keys()
    }
    fn is_once(&self) -> bool {
        self.source.is_once()
    }
    fn is_listed(&self) -> bool {
        self.source.is_listed()
    }
    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        self.source.blocks(part)
    }
    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn Samples + '_>, Bad> {
        self.source.open(part, position, layout)
    }
    fn not_adoptable(&self) -> Option<String> {
        self.source.not_adoptable()
    }
    fn notes(&self) -> Vec<String> {
        self.source.notes()
    }
    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.source.warnings();
        warnings.push(self.warning.clone());
        warnings
    }
    fn stamp(&self) -> u64 {
        self.source.stamp()
    }
    fn left_out(&self) -> Vec<Skipped> {
        self.source.left_out()
    }
}
