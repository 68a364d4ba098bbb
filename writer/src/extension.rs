//! A dataset's own directory while samples are added to it. spec.md: GEN-2 to GEN-4.
//!
//! New segments and the new merged index get their names beside the old ones, and mean nothing until a manifest that
//! names them takes the place of the old one. No file that the old manifest names is touched before that, or after.

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

/// A dataset's directory, held against other writers. Dropped before [`Extension::commit`], it is as it was.
pub(crate) struct Extension {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    before: Manifest,
    _lock: Box<dyn DirectoryLock>,
}

impl Extension {
    /// Takes hold of the dataset, and removes what an interrupted writer, or the generation before, left in it.
    pub(crate) fn begin(storage: &Arc<dyn Storage>, dataset: &Path) -> Result<Self, WriteError> {
        let path = dataset.components().collect::<PathBuf>();
        check_kind(storage.as_ref(), &path)?;
        let lock = lock(storage.as_ref(), &path)?;
        let before = read_manifest(storage.as_ref(), &path)?;
        // The manifest that was read may not be durable: a crash must not bring back one whose files are gone.
        storage.sync_dir(&path).map_err(WriteError::io("sync", &path))?;
        let extension = Self { storage: Arc::clone(storage), path, before, _lock: lock };
        extension.remove_orphans()?;
        Ok(extension)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest that stands until [`Extension::commit`].
    pub(crate) fn before(&self) -> &Manifest {
        &self.before
    }

    /// A number from which on no segment of the dataset is named.
    pub(crate) fn first_number(&self) -> u64 {
        let numbers = named(&self.before).filter_map(|name| name.split('.').next()?.parse::<u64>().ok());
        let past = numbers.max().map_or(0, |number| number.saturating_add(1));
        past.max(self.before.segments().len() as u64)
    }

    /// Puts `manifest` in the place of the old one. The old merged index stays for readers that opened it.
    pub(crate) fn commit(self, manifest: &Manifest) -> Result<(), WriteError> {
        write_manifest(&self.storage, &self.path, manifest)?;
        self.storage.sync_dir(&self.path).map_err(WriteError::io("sync", &self.path))
    }

    /// Removes files of ours that the manifest does not name.
    fn remove_orphans(&self) -> Result<(), WriteError> {
        let names = self.storage.list(&self.path).map_err(WriteError::io("list", &self.path))?;
        let wanted: HashSet<&OsStr> = named(&self.before).map(OsStr::new).collect();
        for name in names.iter().filter(|name| is_ours(name) && !wanted.contains(name.as_os_str())) {
            let path = self.path.join(name);
            self.storage.remove_file(&path).map_err(WriteError::io("remove", &path))?;
        }
        Ok(())
    }
}

impl Drop for Extension {
    fn drop(&mut self) {
        // Where the new manifest got its name, also where what came after failed, its files are no orphans.
        if read_manifest(self.storage.as_ref(), &self.path).is_ok_and(|now| now == self.before) {
            // Nothing to be done where this fails too: the next writer that adds removes them.
            let _ = self.remove_orphans();
        }
    }
}

/// The names in the dataset's directory that a manifest speaks of, and its own.
fn named(manifest: &Manifest) -> impl Iterator<Item = &str> {
    let files = manifest.segments().iter().flat_map(|segment| [index_name(segment), segment.path.as_str()]);
    files.chain([manifest.index().file.as_str(), Manifest::FILE_NAME])
}
