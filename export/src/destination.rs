//! The destination of an export. It must not exist. The export writes to NAME.partial beside it, renames that to NAME
//! when everything in it is durable, and removes it if the export fails.
//!
//! Existing files are never touched: NAME.partial is always newly created, the rename never replaces anything, and
//! NAME.partial is removed only while it is still the file or folder that this export created.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use grainstore_format::{UrlPath, shown_path};
use grainstore_host::{directory_of, rename_new, sync_directory};

use crate::ExportError;

/// Whether an export is one file or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputKind {
    File,
    Folder,
}

/// The output under construction, NAME.partial. Dropped before it is renamed to `out`, it is removed.
pub(crate) struct Partial {
    out: PathBuf,
    path: PathBuf,
    kind: OutputKind,
    /// The open file, so that the bytes go to the file that was created; `None` for a folder.
    file: Option<File>,
    made: (u64, u64),
    is_renamed: bool,
}

/// Fails if `out` or its `.partial` exists, or their parent folder does not.
pub(crate) fn check(out: &Path) -> Result<(), ExportError> {
    let partial = partial_of(out)?;
    if fs::symlink_metadata(out).is_ok() {
        return Err(ExportError::Exists { path: out.to_path_buf() });
    }
    if fs::symlink_metadata(&partial).is_ok() {
        return Err(ExportError::PartialExists { path: partial });
    }
    let folder = directory_of(out);
    if !folder.exists() {
        UrlPath::refuse(out).map_err(ExportError::Url)?;
    }
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(ExportError::io("write into it", folder)(io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(ExportError::io("write into it", folder)(error)),
    }
}

/// Fails if `out` would be inside `dataset`: a dataset's directory holds only its own files.
pub(crate) fn check_outside(out: &Path, dataset: &Path) -> Result<(), ExportError> {
    let whole = |path| fs::canonicalize(path).map_err(ExportError::io("look at it", path));
    if !whole(directory_of(out))?.starts_with(whole(dataset)?) {
        return Ok(());
    }
    let why = format!("it would be inside the dataset {}", shown_path(dataset));
    Err(ExportError::BadDestination { path: out.to_path_buf(), why })
}

impl Partial {
    /// Creates the `.partial` file or folder.
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
        Ok(Self { out: out.to_path_buf(), path, kind, file, made: identity(&metadata), is_renamed: false })
    }

    /// Returns the file to write to, the first time it is called; `None` for a folder.
    pub(crate) fn take_file(&mut self) -> Option<File> {
        self.file.take()
    }

    /// The path to write to.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames it to its final name. Everything in it has been synced.
    pub(crate) fn rename_into_place(mut self) -> Result<(), ExportError> {
        if self.kind == OutputKind::Folder {
            sync_folder(&self.path)?;
        }
        rename_new(&self.path, &self.out).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                ExportError::Exists { path: self.out.clone() }
            }
            _ => ExportError::io("give it its name", &self.path)(error),
        })?;
        self.is_renamed = true;
        sync_folder(directory_of(&self.out))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let is_ours = || fs::symlink_metadata(&self.path).is_ok_and(|metadata| identity(&metadata) == self.made);
        if self.is_renamed || !is_ours() {
            return;
        }
        // The error that made the export fail is the one to report.
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
