//! Rebuilds the merged index of a dataset from the indexes of its segments. spec.md: section 2.

use std::path::Path;
use std::sync::Arc;

use grainstore_format::Manifest;

use crate::WriteError;
use crate::commit::{lock, write_manifest};
use crate::existing::{check_segments, read_manifest};
use crate::merge::merge;
use crate::names::index_name;
use crate::storage::Storage;

/// Rebuilds a lost or damaged merged index of the dataset `directory`; `memory_len` bounds the buffers in bytes.
///
/// A dataset of one segment has no merged index and is not changed.
///
/// # Errors
/// If the manifest or a segment's own index is damaged, or the index is not the one that the manifest names.
pub fn rebuild_index(storage: &Arc<dyn Storage>, directory: &Path, memory_len: u64) -> Result<(), WriteError> {
    let _lock = lock(storage.as_ref(), directory)?;
    let manifest = read_manifest(storage.as_ref(), directory)?;
    let segments = manifest.segments();
    if segments.len() == 1 {
        return Ok(());
    }
    let spec = check_segments(storage.as_ref(), directory, segments, memory_len)?;
    let paths = segments.iter().map(|segment| directory.join(index_name(segment)));
    let index = merge(storage, directory, paths, &spec, manifest.fingerprint())?;
    if index == *manifest.index() {
        return storage.sync_dir(directory).map_err(WriteError::io("sync", directory));
    }
    let earlier: Vec<u32> = manifest.generations().iter().rev().skip(1).rev().map(|g| g.segment_count).collect();
    write_manifest(storage, directory, &Manifest::new(index, segments.to_vec(), &earlier)?)?;
    storage.sync_dir(directory).map_err(WriteError::io("sync", directory))
}
