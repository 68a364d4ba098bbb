//! Reads the properties of an existing dataset, to add samples to it or to rebuild its index.

use std::path::Path;

use grainstore_format::{FormatError, Geometry, Manifest, Metadata, SegmentRef, UrlPath, to_usize};

use crate::index::IndexSpec;
use crate::names::index_name;
use crate::rows::SegmentRows;
use crate::storage::{EntryKind, Storage};
use crate::{DiskStorage, WriteError};

/// The properties of a dataset that added samples must match.
#[derive(Debug, Clone, PartialEq)]
pub struct ExistingDataset {
    /// Chunk size, alignment and hash seed.
    pub geometry: Geometry,
    /// Schema and user metadata.
    pub metadata: Metadata,
    /// Whether every sample has a key; otherwise none has.
    pub keyed: bool,
    /// The number of its samples.
    pub sample_count: u64,
    /// The number of its segments.
    pub segment_count: u64,
}

/// Reads the properties of the dataset in this directory.
///
/// # Errors
/// If it is not a dataset's directory, or it is damaged.
pub fn existing(dataset: &Path) -> Result<ExistingDataset, WriteError> {
    existing_on(&DiskStorage, dataset)
}

/// As [`existing`], on `storage`.
///
/// # Errors
/// As [`existing`].
pub fn existing_on(storage: &dyn Storage, dataset: &Path) -> Result<ExistingDataset, WriteError> {
    check_kind(storage, dataset)?;
    let manifest = read_manifest(storage, dataset)?;
    let spec = check_segments(storage, dataset, manifest.segments(), 0)?;
    Ok(ExistingDataset {
        geometry: spec.geometry,
        metadata: spec.metadata.as_ref().clone(),
        keyed: spec.keyed,
        sample_count: manifest.segments().iter().map(|segment| segment.sample_count).sum(),
        segment_count: manifest.segments().len() as u64,
    })
}

/// Only a directory with a manifest can change.
pub(crate) fn check_kind(storage: &dyn Storage, dataset: &Path) -> Result<(), WriteError> {
    let refuse = |why: &str| Err(WriteError::NotExtendable { path: dataset.to_owned(), why: why.into() });
    let look = |path: &Path| storage.kind(path).map_err(WriteError::io("look at", path));
    match look(dataset)? {
        Some(EntryKind::Directory) => {}
        Some(EntryKind::File) => return refuse("it is a file; only a dataset's directory can change"),
        Some(EntryKind::Other) => return refuse("it is not a directory"),
        None => {
            UrlPath::refuse(dataset).map_err(WriteError::Url)?;
            return refuse("it does not exist");
        }
    }
    match look(&dataset.join(Manifest::FILE_NAME))? {
        Some(_) => Ok(()),
        None => refuse("it has no manifest.json, so it is not a dataset"),
    }
}

/// Checks that the segments' own indexes are those that the manifest names, and agree with each other. Returns the
/// properties of a merged index, with the user metadata of the last segment. spec.md: GEN-4.
pub(crate) fn check_segments(
    storage: &dyn Storage,
    directory: &Path,
    segments: &[SegmentRef],
    memory_len: u64,
) -> Result<IndexSpec, WriteError> {
    let mut last: Option<IndexSpec> = None;
    for segment in segments {
        let path = directory.join(index_name(segment));
        let rows = SegmentRows::open(storage, path.clone())?;
        let damaged =
            |detail| Err(WriteError::Damaged { path, source: FormatError::Damaged { what: "segment", detail } });
        let found = rows.emitted().fingerprint;
        if found != segment.fingerprint {
            return damaged(format!("its fingerprint is {found}, the manifest has {}", segment.fingerprint));
        }
        let own = rows.spec(memory_len);
        if last.is_some_and(|before| !before.agrees_with(&own)) {
            return damaged("schema, keys or geometry are not those of the segments before it".to_owned());
        }
        last = Some(own);
    }
    last.ok_or(WriteError::Empty)
}

/// Reads `manifest.json` of a dataset's directory.
pub(crate) fn read_manifest(storage: &dyn Storage, directory: &Path) -> Result<Manifest, WriteError> {
    let path = directory.join(Manifest::FILE_NAME);
    let bytes = read_document(storage, &path)?;
    Manifest::decode(&bytes).map_err(|source| WriteError::Damaged { path, source })
}

/// Reads a JSON document of grainstore; one longer than the limit of a manifest is refused unread.
pub(crate) fn read_document(storage: &dyn Storage, path: &Path) -> Result<Vec<u8>, WriteError> {
    let file = storage.open(path).map_err(WriteError::io("open", path))?;
    let len = file.file_len().map_err(WriteError::io("look at", path))?;
    if len > Manifest::MAX_LEN {
        let source = FormatError::Limit { what: "length of the file", found: len, limit: Manifest::MAX_LEN };
        return Err(WriteError::Damaged { path: path.to_owned(), source });
    }
    let mut bytes = vec![0; to_usize(len)];
    file.read_exact_at(&mut bytes, 0).map_err(WriteError::io("read", path))?;
    Ok(bytes)
}
