//! The directory of a dataset while samples are added to it, or removed from it. spec.md: GEN-2 to GEN-5.
//!
//! New segments and the new merged index are written beside the old ones, and have no effect until a manifest that
//! names them replaces the old one. No file that the old manifest names is changed, before that or after.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::Manifest;

use crate::WriteError;
use crate::commit::{is_ours, lock, write_manifest};
use crate::existing::{check_kind, read_manifest};
use crate::names::index_name;
use crate::storage::{DirectoryLock, Storage};

/// A dataset's directory, locked against other writers. Dropped before [`Extension::commit`], it is as it was before.
pub(crate) struct Extension {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    before: Manifest,
    _lock: Box<dyn DirectoryLock>,
}

impl Extension {
    /// Locks the dataset, and removes files that an interrupted writer or an earlier generation left in it.
    pub(crate) fn begin(storage: &Arc<dyn Storage>, dataset: &Path) -> Result<Self, WriteError> {
        let path = dataset.components().collect::<PathBuf>();
        check_kind(storage.as_ref(), &path)?;
        let lock = lock(storage.as_ref(), &path)?;
        let before = read_manifest(storage.as_ref(), &path)?;
        // The manifest that was read may not be durable: a crash must not bring back one whose files are gone.
        storage.sync_dir(&path).map_err(WriteError::io("sync", &path))?;
        let extension = Self { storage: Arc::clone(storage), path, before, _lock: lock };
        extension.remove_orphans(&extension.before)?;
        Ok(extension)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest that is valid until [`Extension::commit`].
    pub(crate) fn before(&self) -> &Manifest {
        &self.before
    }

    /// A number larger than that of every segment of the dataset.
    pub(crate) fn first_number(&self) -> u64 {
        let numbers = named(&self.before).filter_map(|name| name.split('.').next()?.parse::<u64>().ok());
        let past = numbers.max().map_or(0, |number| number.saturating_add(1));
        past.max(self.before.segments().len() as u64)
    }

    /// Replaces the manifest. The old merged index remains for readers that opened it.
    pub(crate) fn commit(self, manifest: &Manifest) -> Result<(), WriteError> {
        self.commit_and_free(manifest, false).map(drop)
    }

    /// As [`Extension::commit`]. Where `frees` is set, the files that the manifest does not name are then removed, also
    /// those that a reader may need. Returns whether they are.
    pub(crate) fn commit_and_free(self, manifest: &Manifest, frees: bool) -> Result<bool, WriteError> {
        write_manifest(&self.storage, &self.path, manifest)?;
        self.storage.sync_dir(&self.path).map_err(WriteError::io("sync", &self.path))?;
        // The generation is committed: if files cannot be removed, the next writer does it.
        Ok(frees && self.remove_orphans(manifest).is_ok())
    }

    /// Removes our files that `manifest`, which is that of the directory, does not name.
    fn remove_orphans(&self, manifest: &Manifest) -> Result<(), WriteError> {
        let names = self.storage.list(&self.path).map_err(WriteError::io("list", &self.path))?;
        let wanted: HashSet<&OsStr> = named(manifest).map(OsStr::new).collect();
        for name in names.iter().filter(|name| is_ours(name) && !wanted.contains(name.as_os_str())) {
            let path = self.path.join(name);
            self.storage.remove_file(&path).map_err(WriteError::io("remove", &path))?;
        }
        Ok(())
    }
}

impl Drop for Extension {
    fn drop(&mut self) {
        // If the new manifest was renamed, its files are not orphans, even if a later step failed.
        if read_manifest(self.storage.as_ref(), &self.path).is_ok_and(|now| now == self.before) {
            // If this fails, too, the next writer that adds samples removes them.
            let _ = self.remove_orphans(&self.before);
        }
    }
}

/// The file names that a manifest contains, and its own.
fn named(manifest: &Manifest) -> impl Iterator<Item = &str> {
    let files = manifest.segments().iter().flat_map(|segment| [index_name(segment), segment.path.as_str()]);
    files.chain([manifest.index().file.as_str(), Manifest::FILE_NAME])
}
