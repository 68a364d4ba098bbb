//! Files beside shards that are not shards: what describes or indexes a dataset is left out with a warning, and what may
//! be data is refused.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grainstore_format::{Remedy, shown_path};

use crate::junk::is_junk_file;
use crate::recognise::Recognised;
use crate::source::Description;
use crate::{Bad, Blocks, Layout, Remark, SampleReader, Source, SourceError};

/// Files that are named in the warning; of the others only the number is given.
const SHOWN_MAX: usize = 5;

pub(crate) struct WithIgnored {
    source: Box<dyn Source>,
    description: Description,
}

/// How files are called that tell of a dataset and are no part of it: in lower case, the whole name or its beginning
/// before a dot.
const NAMES: [&str; 11] = [
    "readme",
    "license",
    "licence",
    "notice",
    "changelog",
    "changes",
    "citation",
    "authors",
    "md5sums",
    "sha1sums",
    "sha256sums",
];

/// Their extensions, in lower case: texts, checksums, indexes of shards, scripts, locks.
const EXTENSIONS: [&str; 17] = [
    "md", "rst", "txt", "html", "pdf", "md5", "sha1", "sha256", "sha512", "idx", "index", "log", "sh", "py", "ipynb",
    "lock", "mdb-lock",
];

/// Descriptions that programs write beside shards.
const DESCRIPTIONS: [&str; 5] = ["dataset_info.json", "dataset_infos.json", "features.json", "state.json", "lock.mdb"];

/// Refuses files among shards that may be data.
pub(crate) fn refuse_data(found: &Recognised) -> Result<(), SourceError> {
    let data: Vec<&PathBuf> = found.ignored.iter().filter(|path| !is_about(path)).collect();
    let Some(first) = data.first() else { return Ok(()) };
    let why = format!(
        "files among the shards are not {} and may be data: {}; to leave them out, name the shards or their format",
        found.format.name(),
        names_of(&data)
    );
    Err(SourceError::refused(first.parent().unwrap_or(first), Remark::new(why, Remedy::NameFormat)))
}

/// Adds a warning that names the `ignored` files; returns `source` itself where there are none.
pub(crate) fn with_ignored(source: Box<dyn Source>, ignored: &[PathBuf]) -> Box<dyn Source> {
    if ignored.is_empty() {
        return source;
    }
    let mut description = source.description().clone();
    let kind = description.kind;
    description.not_packed.files += ignored.len() as u64;
    let names = names_of(&ignored.iter().collect::<Vec<_>>());
    description.warnings.push(format!("files among the shards that are not {kind} are NOT packed: {names}").into());
    Box::new(WithIgnored { source, description })
}

fn names_of(paths: &[&PathBuf]) -> String {
    let name = |path: &&PathBuf| shown_path(path.file_name().map_or(path.as_path(), Path::new));
    let mut names: Vec<String> = paths.iter().take(SHOWN_MAX).map(name).collect();
    if paths.len() > SHOWN_MAX {
        names.push(format!("{} more", paths.len() - SHOWN_MAX));
    }
    names.join(", ")
}

/// Whether a file of this name tells of a dataset and is no part of it.
fn is_about(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let (before, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    let first = before.split('.').next().unwrap_or_default();
    NAMES.contains(&first)
        || EXTENSIONS.contains(&extension)
        || DESCRIPTIONS.contains(&name.as_str())
        || is_junk_file(path.file_name().unwrap_or_default().as_bytes())
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
