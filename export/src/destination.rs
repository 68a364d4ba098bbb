//! Where an export goes. It must not exist; the work stands beside it in NAME.partial, which this run makes, which
//! gets the name when everything in it is durable, and which goes away with a run that fails.
//!
//! Nothing that was there before is touched: the place of the work is made anew or not at all, it is renamed without
//! replacing, and it is removed only while it is still what this run made.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use grainstore_format::shown_path;
use grainstore_host::{directory_of, rename_new, sync_directory};

use crate::ExportError;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputKind {
    File,
    Folder,
}

/// The place of the work. Dropped, it is removed.
pub(crate) struct Partial {
    out: PathBuf,
    path: PathBuf,
    kind: OutputKind,
    /// Of a file: open, so that what is written is what was made.
    file: Option<File>,
    made: (u64, u64),
    is_published: bool,
}

/// Fails where `out` or the place of the work exists, or the folder that they are to stand in does not.
pub(crate) fn check(out: &Path) -> Result<(), ExportError> {
    let partial = partial_of(out)?;
    if fs::symlink_metadata(out).is_ok() {
        return Err(ExportError::Exists { path: out.to_path_buf() });
    }
    if fs::symlink_metadata(&partial).is_ok() {
        return Err(ExportError::PartialExists { path: partial });
    }
    let folder = directory_of(out);
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(ExportError::io("write into it", folder)(io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(ExportError::io("write into it", folder)(error)),
    }
}

/// Fails where `out` would lie inside `dataset`, whose files are only its own.
pub(crate) fn check_outside(out: &Path, dataset: &Path) -> Result<(), ExportError> {
    let whole = |path| fs::canonicalize(path).map_err(ExportError::io("look at it", path));
    if !whole(directory_of(out))?.starts_with(whole(dataset)?) {
        return Ok(());
    }
    let why = format!("it would be inside the dataset {}", shown_path(dataset));
    Err(ExportError::BadDestination { path: out.to_path_buf(), why })
}

impl Partial {
    /// Makes the place of the work.
    pub(crate) fn create(out: &Path, kind: OutputKind) -> Result<Self, ExportError> {
        let path = partial_of(out)?;
        let made = match kind {
            OutputKind::Folder => fs::create_dir(&path).map(|()| None),
            OutputKind::File => File::options().write(true).create_new(true).open(&path).map(Some),
        };
        let file = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => ExportError::PartialExists { path: path.clone() },
            _ => ExportError::io("create it", &path)(error),
        })?;
        let metadata = fs::symlink_metadata(&path).map_err(ExportError::io("look at it", &path))?;
        Ok(Self { out: out.to_path_buf(), path, kind, file, made: identity(&metadata), is_published: false })
    }

    /// The file to write to, once; none of a folder.
    pub(crate) fn take_file(&mut self) -> Option<File> {
        self.file.take()
    }

    /// Where to write.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name. Everything in it has been synced.
    pub(crate) fn publish(mut self) -> Result<(), ExportError> {
        if self.kind == OutputKind::Folder {
            sync_folder(&self.path)?;
        }
        rename_new(&self.path, &self.out).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                ExportError::Exists { path: self.out.clone() }
            }
            _ => ExportError::io("give it its name", &self.path)(error),
        })?;
        self.is_published = true;
        sync_folder(directory_of(&self.out))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let is_ours = || fs::symlink_metadata(&self.path).is_ok_and(|metadata| identity(&metadata) == self.made);
        if self.is_published || !is_ours() {
            return;
        }
        // The first error is the one to tell.
        let _ = match self.kind {
            OutputKind::Folder => fs::remove_dir_all(&self.path),
            OutputKind::File => fs::remove_file(&self.path),
        };
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<(), ExportError> {
    sync_directory(path).map_err(ExportError::io("sync it", path))
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn partial_of(out: &Path) -> Result<PathBuf, ExportError> {
    let no_name =
        || ExportError::BadDestination { path: out.to_path_buf(), why: "its last part is not a name".to_owned() };
    let mut name = OsString::from(out.file_name().ok_or_else(no_name)?);
    name.push(".partial");
    Ok(out.with_file_name(name))
}
