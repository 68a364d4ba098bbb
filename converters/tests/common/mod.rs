//! What the tests of the folder converter share: trees, conversions, and reading back what was packed.

#![allow(dead_code, reason = "each program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a step of a test that fails should fail the test")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use grainstore_converters::{ConvertError, ConvertOptions, ConvertSummary, NoEvents, OnBad, Order, convert};
use grainstore_format::Remedy;
use grainstore_sources::folder::listing::OnUnreadable;
use grainstore_sources::folder::{FolderLabels, FolderOptions, FolderSource};
use grainstore_store::{Dataset, check_and_decode};

/// Relative path and contents of every file of a tree.
pub(crate) type Tree = BTreeMap<Vec<u8>, Vec<u8>>;

/// How a folder is packed, besides the options of every test.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) order: Order,
    pub(crate) limit: Option<u64>,
    pub(crate) skip: bool,
    pub(crate) jobs: Option<NonZeroUsize>,
}

pub(crate) const BY_PATH: How = How { order: Order::Source, limit: None, skip: false, jobs: NonZeroUsize::new(2) };
pub(crate) const SKIPPING: How = How { skip: true, ..BY_PATH };

impl How {
    pub(crate) fn folder(&self) -> FolderOptions {
        let on_unreadable = if self.skip { OnUnreadable::Skip } else { OnUnreadable::Stop };
        FolderOptions { on_unreadable, jobs: self.jobs, ..FolderOptions::default() }
    }

    pub(crate) fn options(&self, options: &ConvertOptions) -> ConvertOptions {
        let on_bad = if self.skip { OnBad::Skip } else { OnBad::Stop };
        ConvertOptions { order: self.order, limit: self.limit, on_bad, jobs: self.jobs, ..options.clone() }
    }
}

/// A folder `src` with files in it, and room beside it for datasets.
pub(crate) struct FolderCase {
    folder: tempfile::TempDir,
}

impl FolderCase {
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        Self::of(&files.iter().map(|(path, text)| (path.as_bytes().to_vec(), text.as_bytes().to_vec())).collect())
    }

    pub(crate) fn of(tree: &Tree) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(place.source()).unwrap();
        for (path, contents) in tree {
            let path = place.source().join(OsStr::from_bytes(path));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        place
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.path("src")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Packs `src` into `name`.
    pub(crate) fn pack(&self, name: &str, how: &How) -> Result<ConvertSummary, ConvertError> {
        self.pack_with(name, how, &small())
    }

    pub(crate) fn pack_with(
        &self,
        name: &str,
        how: &How,
        options: &ConvertOptions,
    ) -> Result<ConvertSummary, ConvertError> {
        let source = match FolderSource::open(&self.source(), &how.folder()) {
            // Some files at CLASS/FILE and others not.
            Err(error) if error.remedy() == Some(Remedy::PackWithoutLabels) => {
                let folder = FolderOptions { folder_labels: FolderLabels::Ignored, ..how.folder() };
                FolderSource::open(&self.source(), &folder)?
            }
            opened => opened?,
        };
        convert(&source, &self.path(name), &how.options(options), &NoEvents)
    }

    /// The names beside `src`, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Small chunks and segments, so that a few files fill several.
pub(crate) fn small() -> ConvertOptions {
    ConvertOptions {
        chunk_size: grainstore_format::ChunkSize::new(4096).unwrap(),
        segment_size: 64 << 10,
        jobs: NonZeroUsize::new(2),
        ..ConvertOptions::default()
    }
}

/// Keys and payloads in stored order.
pub(crate) fn samples(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let dataset = Dataset::open(path).unwrap();
    let key = |ordinal| dataset.key(ordinal).unwrap().unwrap();
    (0..dataset.sample_count()).map(|ordinal| (key(ordinal), payload(&dataset, ordinal))).collect()
}

pub(crate) fn keys(path: &Path) -> Vec<String> {
    samples(path).into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

/// The payload of a sample, checked; read the plain way.
pub(crate) fn payload(dataset: &Dataset, ordinal: u64) -> Vec<u8> {
    let location = dataset.locate(ordinal).unwrap();
    let file = File::open(dataset.segments()[location.segment].path()).unwrap();
    let mut stored = vec![0; grainstore_format::to_usize(location.stored_len)];
    file.read_exact_at(&mut stored, location.offset).unwrap();
    let mut raw = Vec::new();
    check_and_decode(&location, &stored, &mut raw).unwrap();
    raw
}

/// The bytes of every file of a dataset.
pub(crate) fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into(), fs::read(entry.path()).unwrap())).collect()
}
