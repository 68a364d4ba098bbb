//! Makes the merged index of a dataset again, from its segments' own. spec.md: section 2.

use std::path::Path;
use std::sync::Arc;

use grainstore_format::{Fingerprint, FormatError, Manifest, SegmentKind, SegmentRef};

use crate::WriteError;
use crate::commit::{lock, write_manifest};
use crate::dataset::merge;
use crate::rows::SegmentRows;
use crate::storage::Storage;

/// Rebuilds a lost or damaged merged index of the dataset `directory`; `memory_len` bounds the buffers in bytes.
///
/// A dataset of one segment has none, and stays as it is.
///
/// # Errors
/// Where the manifest or a segment's own index is damaged, or is not what the manifest says.
pub fn rebuild_index(storage: &Arc<dyn Storage>, directory: &Path, memory_len: u64) -> Result<(), WriteError> {
    let _lock = lock(storage.as_ref(), directory)?;
    let manifest = read_manifest(storage.as_ref(), directory)?;
    let segments = manifest.segments();
    if segments.len() == 1 {
        return Ok(());
    }
    let mut spec = None;
    for segment in segments {
        let path = directory.join(index_name(segment));
        let rows = SegmentRows::open(storage.as_ref(), path.clone())?;
        let found = Fingerprint::of_directory(&rows.directory_bytes);
        if found != segment.fingerprint {
            let detail = format!("its fingerprint is {found}, the manifest says {}", segment.fingerprint);
            return Err(WriteError::Damaged { path, source: FormatError::Damaged { what: "segment", detail } });
        }
        let own = rows.spec(memory_len);
        let first = spec.get_or_insert_with(|| own.clone());
        if !first.agrees_with(&own) {
            let detail = "schema, keys or geometry are not those of the first segment".to_owned();
            return Err(WriteError::Damaged { path, source: FormatError::Damaged { what: "segment", detail } });
        }
    }
    let spec = spec.ok_or(WriteError::Empty)?;
    let paths = segments.iter().map(|segment| directory.join(index_name(segment)));
    let index = merge(storage, directory, paths, &spec, manifest.fingerprint())?;
    if index == *manifest.index() {
        return storage.sync_dir(directory).map_err(WriteError::io("sync", directory));
    }
    let earlier: Vec<u32> = manifest.generations().iter().rev().skip(1).rev().map(|g| g.segment_count).collect();
    write_manifest(storage, directory, &Manifest::new(index, segments.to_vec(), &earlier)?)?;
    storage.sync_dir(directory).map_err(WriteError::io("sync", directory))
}

/// The file in the dataset's directory that holds a segment's own index.
fn index_name(segment: &SegmentRef) -> &str {
    match &segment.kind {
        SegmentKind::External { index_file, .. } => index_file,
        _ => &segment.path,
    }
}

fn read_manifest(storage: &dyn Storage, directory: &Path) -> Result<Manifest, WriteError> {
    let path = directory.join(Manifest::FILE_NAME);
    let file = storage.open(&path).map_err(WriteError::io("open", &path))?;
    let len = file.file_len().map_err(WriteError::io("look at", &path))?;
    if len > Manifest::MAX_LEN {
        let limit = Manifest::MAX_LEN;
        let source = FormatError::Limit { what: "length of the manifest", found: len, limit };
        return Err(WriteError::Damaged { path, source });
    }
    let mut bytes = vec![0; grainstore_format::to_usize(len)];
    file.read_exact_at(&mut bytes, 0).map_err(WriteError::io("read", &path))?;
    Manifest::decode(&bytes).map_err(|source| WriteError::Damaged { path, source })
}
