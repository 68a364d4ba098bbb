//! The directory in which a dataset is made, and the step that gives it its name. spec.md: section 10.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_format::{Manifest, UrlPath, shown_path};

use crate::names::JOURNAL_NAME;
use crate::output::Output;
use crate::storage::{DirectoryLock, EntryKind, Storage};
use crate::{DiskStorage, WriteError};

const PARTIAL: &str = ".partial";

/// `NAME.partial`, locked against other writers. Dropped before [`PartialDirectory::commit`], it is removed unless it
/// is kept.
pub(crate) struct PartialDirectory {
    storage: Arc<dyn Storage>,
    target: PathBuf,
    path: PathBuf,
    replace: bool,
    is_kept: bool,     // its contents are useful, or not ours to remove
    has_journal: bool, // of this writer, or possibly of an interrupted one
    _lock: Box<dyn DirectoryLock>,
}

impl PartialDirectory {
    /// Creates `target.partial`, or takes over and empties one that an interrupted writer left.
    pub(crate) fn create(storage: &Arc<dyn Storage>, target: &Path, overwrite: bool) -> Result<Self, WriteError> {
        let mut partial = Self::take_over(storage, target, overwrite)?;
        partial.clear()?;
        Ok(partial)
    }

    /// Creates `target.partial`, or takes over one that an interrupted writer left, with its contents. It is kept until
    /// [`PartialDirectory::clear`].
    pub(crate) fn take_over(storage: &Arc<dyn Storage>, target: &Path, overwrite: bool) -> Result<Self, WriteError> {
        // Removes `/` or `/.` at the end, which `file_name` ignores and the operating system does not.
        let target = &target.components().collect::<PathBuf>();
        let replace = check_target(storage.as_ref(), target, overwrite)?;
        let path = partial_path(target)?;
        match storage.create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                if error.kind() == io::ErrorKind::NotFound {
                    UrlPath::refuse(target).map_err(WriteError::Url)?;
                }
                return Err(WriteError::io("create directory", &path)(error));
            }
            _ => {}
        }
        // With a link there, the writer would create and remove files somewhere else.
        if storage.kind(&path).map_err(WriteError::io("look at", &path))? != Some(EntryKind::Directory) {
            return Err(WriteError::NotReplaceable { path, why: "it is not a directory".into() });
        }
        let lock = lock(storage.as_ref(), &path)?;
        let storage = Arc::clone(storage);
        Ok(Self { storage, target: target.to_owned(), path, replace, is_kept: true, has_journal: true, _lock: lock })
    }

    /// Removes everything in the directory, which is no longer kept.
    pub(crate) fn clear(&mut self) -> Result<(), WriteError> {
        self.clear_but(&[])?;
        self.is_kept = false;
        self.has_journal = false;
        Ok(())
    }

    /// Removes everything except files with these names.
    pub(crate) fn clear_but(&self, wanted: &[&str]) -> Result<(), WriteError> {
        remove_ours(self.storage.as_ref(), &self.path, wanted)
    }

    /// Keeps the directory even if the writer fails: its journal lists the complete segments.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
        self.has_journal = true;
    }

    /// Removes the directory when the writer is dropped.
    pub(crate) fn give_up(&mut self) {
        self.is_kept = false;
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the manifest, and renames the directory to its final name. After this the dataset exists.
    ///
    /// Returns the path of the replaced dataset if it could not be removed.
    pub(crate) fn commit(mut self, manifest: &Manifest) -> Result<Option<PathBuf>, WriteError> {
        write_manifest(&self.storage, &self.path, manifest)?;
        self.storage.sync_dir(&self.path).map_err(WriteError::io("sync", &self.path))?;
        let parent = parent_of(&self.target);
        // Held until the old dataset is removed: after the exchange it is in the directory that the next writer would
        // use.
        let _old = if self.replace { Some(lock(self.storage.as_ref(), &self.target)?) } else { None };
        if self.replace {
            // Checked again: what is there now would be removed below.
            check_target(self.storage.as_ref(), &self.target, true)?;
            self.storage.exchange(&self.path, &self.target).map_err(WriteError::io("replace", &self.target))?;
        } else {
            self.storage.rename_new(&self.path, &self.target).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => WriteError::DestinationExists { path: self.target.clone() },
                _ => WriteError::io("rename", &self.path)(error),
            })?;
        }
        self.is_kept = true;
        self.storage.sync_dir(&parent).map_err(WriteError::io("sync", &parent))?;
        if self.has_journal {
            self.remove_journal();
        }
        if !self.replace {
            return Ok(None);
        }
        let removed = remove_dataset(self.storage.as_ref(), &self.path);
        // If this fails, a crash may undo the removal: the next writer of this name then removes the dataset again.
        let _ = self.storage.sync_dir(&parent);
        Ok(removed.is_err().then(|| self.path.clone()))
    }

    /// Removes the journal. This happens last, so that a crash before loses no work. If it fails, the file remains and
    /// does no harm. spec.md: WR-5.
    fn remove_journal(&self) {
        let _ = self.storage.remove_file(&self.target.join(JOURNAL_NAME));
        let _ = self.storage.sync_dir(&self.target);
    }
}

impl Drop for PartialDirectory {
    fn drop(&mut self) {
        if !self.is_kept {
            // If this fails, too, the next writer of this name takes over the directory.
            let _ = remove_dataset(self.storage.as_ref(), &self.path);
        }
    }
}

/// The directory in which an interrupted writer of `target` left finished segments and a journal, if there is one.
/// `DatasetWriter::resume` continues there.
pub fn resumable(target: &Path) -> Option<PathBuf> {
    let partial = partial_path(&target.components().collect::<PathBuf>()).ok()?;
    let kind = DiskStorage.kind(&partial.join(JOURNAL_NAME)).ok()?;
    (kind == Some(EntryKind::File)).then_some(partial)
}

/// Like [`resumable`], but fails if a writer is using the directory.
///
/// # Errors
/// `Locked` if a writer is using the directory.
pub fn abandoned(target: &Path) -> Result<Option<PathBuf>, WriteError> {
    let Some(partial) = resumable(target) else { return Ok(None) };
    lock(&DiskStorage, &partial).map(|_lock| Some(partial))
}

/// Locks a directory against other writers.
pub(crate) fn lock(storage: &dyn Storage, directory: &Path) -> Result<Box<dyn DirectoryLock>, WriteError> {
    storage.lock_dir(directory).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => WriteError::Locked { path: directory.to_owned() },
        _ => WriteError::io("lock", directory)(error),
    })
}

/// Writes `manifest.json` in `directory`, through a temporary name.
pub(crate) fn write_manifest(
    storage: &Arc<dyn Storage>,
    directory: &Path,
    manifest: &Manifest,
) -> Result<(), WriteError> {
    // The file names in the manifest become durable before the manifest does.
    storage.sync_dir(directory).map_err(WriteError::io("sync", directory))?;
    let mut output = Output::create(storage, directory.join(Manifest::FILE_NAME))?;
    output.write(&manifest.encode()?)?;
    output.rename_into_place()
}

fn partial_path(target: &Path) -> Result<PathBuf, WriteError> {
    let refuse = |why: &str| Err(WriteError::NotReplaceable { path: target.to_owned(), why: why.into() });
    let Some(name) = target.file_name() else { return refuse("it is not a name for a dataset") };
    // The writer of the name without `.partial` would take it over.
    if name.as_encoded_bytes().ends_with(PARTIAL.as_bytes()) {
        return refuse("names that end in .partial are reserved for datasets under construction");
    }
    let mut partial = OsString::from(name);
    partial.push(PARTIAL);
    Ok(target.with_file_name(partial))
}

pub(crate) fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Whether there is a dataset under the final name, to be replaced. Fails if something else is there.
fn check_target(storage: &dyn Storage, target: &Path, overwrite: bool) -> Result<bool, WriteError> {
    let kind = storage.kind(target).map_err(WriteError::io("look at", target))?;
    let refuse = |why: String| Err(WriteError::NotReplaceable { path: target.to_owned(), why });
    match kind {
        None => Ok(false),
        Some(_) if !overwrite => Err(WriteError::DestinationExists { path: target.to_owned() }),
        Some(EntryKind::Directory) => {
            let names = storage.list(target).map_err(WriteError::io("list", target))?;
            if let Some(foreign) = names.iter().find(|name| !is_ours(name)) {
                return refuse(format!("it holds \"{}\", which grainstore did not write", shown_path(foreign)));
            }
            if !names.iter().any(|name| name == Manifest::FILE_NAME) {
                return refuse("it has no manifest.json, so it is not a dataset".into());
            }
            Ok(true)
        }
        Some(_) => refuse("it is not a dataset's directory".into()),
    }
}

/// Whether grainstore gives files this name: nothing else is ever removed.
pub(crate) fn is_ours(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    let name = name.strip_suffix(".spill").unwrap_or(name);
    let digits = |text: &str| text.len() >= 5 && text.bytes().all(|b| b.is_ascii_digit());
    let index = |text: &str| {
        text.strip_prefix("index-").is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    name == Manifest::FILE_NAME
        || name == JOURNAL_NAME
        || name == "merged"
        || name.strip_suffix(".seg").is_some_and(digits)
        || name.strip_suffix(".idx").is_some_and(|name| digits(name) || index(name))
}

/// Removes our files, except those `wanted`, from a directory; fails if it holds anything else.
fn remove_ours(storage: &dyn Storage, directory: &Path, wanted: &[&str]) -> Result<(), WriteError> {
    let mut names = storage.list(directory).map_err(WriteError::io("list", directory))?;
    if let Some(foreign) = names.iter().find(|name| !is_ours(name)) {
        let why = format!("it holds \"{}\", which grainstore did not write", shown_path(foreign));
        return Err(WriteError::NotReplaceable { path: directory.to_owned(), why });
    }
    names.retain(|name| !wanted.iter().any(|wanted| name == wanted));
    // The manifest goes first, so that a half-removed directory is not a dataset; then the journal, so that it is not
    // resumed.
    names.sort_by_key(|name| (name != Manifest::FILE_NAME, name != JOURNAL_NAME));
    for name in names {
        let path = directory.join(name);
        storage.remove_file(&path).map_err(WriteError::io("remove", &path))?;
    }
    Ok(())
}

fn remove_dataset(storage: &dyn Storage, directory: &Path) -> Result<(), WriteError> {
    remove_ours(storage, directory, &[])?;
    storage.remove_dir(directory).map_err(WriteError::io("remove", directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_grainstore_gives_are_ours() {
        for name in [
            "manifest.json",
            "manifest.json.tmp",
            "00000.seg",
            "123456.seg.tmp",
            "00001.idx",
            "index-2f6a09c1d7e84b35.idx",
            "00000.seg.spill.tmp",
            "merged.tmp",
            "progress.json",
            "progress.json.tmp",
        ] {
            assert!(is_ours(OsStr::new(name)), "{name}");
        }
        for name in ["notes.txt", "1.seg", "a.seg", "index-.idx", "manifest.json.bak", ".seg", "checkpoint.seg"] {
            assert!(!is_ours(OsStr::new(name)), "{name}");
        }
    }
}
