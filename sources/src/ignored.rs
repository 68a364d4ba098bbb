//! A source of shards that warns about the files beside them that are not shards.

use std::path::{Path, PathBuf};

use grainstore_format::shown_path;

use crate::source::Description;
use crate::{Bad, Blocks, Layout, SampleReader, Source};

/// Files that are named in the warning; of the others only the number is given.
const SHOWN_MAX: usize = 5;

pub(crate) struct WithIgnored {
    source: Box<dyn Source>,
    description: Description,
}

/// Adds a warning that names the `ignored` files; returns `source` itself where there are none.
pub(crate) fn with_ignored(source: Box<dyn Source>, ignored: &[PathBuf]) -> Box<dyn Source> {
    if ignored.is_empty() {
        return source;
    }
    let name = |path: &PathBuf| shown_path(path.file_name().map_or(path.as_path(), Path::new));
    let mut names: Vec<String> = ignored.iter().take(SHOWN_MAX).map(name).collect();
    if ignored.len() > SHOWN_MAX {
        names.push(format!("{} more", ignored.len() - SHOWN_MAX));
    }
    let mut description = source.description().clone();
    let kind = description.kind;
    let names = names.join(", ");
    description.warnings.push(format!("files among the shards that are not {kind} are NOT packed: {names}").into());
    Box::new(WithIgnored { source, description })
}

impl Source for WithIgnored {
    fn description(&self) -> &Description {
        &self.description
    }

    fn blocks(&self, part: usize) -> Result<Option<Blocks>, Bad> {
        self.source.blocks(part)
    }

    fn open(&self, part: usize, position: u64, layout: Layout) -> Result<Box<dyn SampleReader + '_>, Bad> {
        self.source.open(part, position, layout)
    }

    fn stamp(&self) -> u64 {
        self.source.stamp()
    }
}
