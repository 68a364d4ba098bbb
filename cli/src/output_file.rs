//! A file that appears under its name only once it is whole.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use grainstore_format::{Manifest, shown_path};

/// Names that are tried for a temporary file.
const TEMPORARY_NAMES: u32 = 16;

/// Whether a file must be on the disk before it appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The system may write it out later.
    Later,
    /// It is synced before it gets its name, and the name with it.
    Synced,
}

/// Writes `bytes` to the file `path` through a temporary name beside it. A file that stands there is replaced; what
/// is no regular file, such as a pipe, is written to directly.
///
/// # Errors
/// Where the file cannot be written; then what stood there before still does.
pub(crate) fn write(path: &Path, bytes: &[u8], durability: Durability) -> anyhow::Result<()> {
    write_with(path, durability, |mut file| file.write_all(bytes))
}

/// As [`write()`], of what `fill` writes.
///
/// # Errors
/// As [`write()`], and where `fill` fails.
pub(crate) fn write_with(
    path: &Path,
    durability: Durability,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> anyhow::Result<()> {
    let written = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // A link stays a link: the file that it names is replaced.
        Ok(metadata) if metadata.is_file() => {
            fs::canonicalize(path).and_then(|target| replace(&target, fill, durability))
        }
        Ok(_) => fs::OpenOptions::new().write(true).open(path).and_then(|file| fill(&file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(path, fill, durability),
        Err(error) => Err(error),
    };
    written.with_context(|| cannot_be_written(path))
}

/// Finds out whether [`write()`] could write the regular file `path`, and leaves nothing behind.
///
/// # Errors
/// Where it could not.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let checked = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => fs::canonicalize(path).and_then(|target| create_beside(&target)),
        Ok(_) => Err(io::Error::other("it is no regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_beside(path),
        Err(error) => Err(error),
    };
    checked.and_then(|(temporary, _)| fs::remove_file(temporary)).with_context(|| cannot_be_written(path))
}

fn cannot_be_written(path: &Path) -> String {
    format!("{}: cannot be written", shown_path(path))
}

fn replace(target: &Path, fill: impl FnOnce(&File) -> io::Result<()>, durability: Durability) -> io::Result<()> {
    let (temporary, file) = create_beside(target)?;
    let keep_mode = || match fs::metadata(target) {
        Ok(replaced) => file.set_permissions(replaced.permissions()),
        Err(_) => Ok(()),
    };
    let is_synced = durability == Durability::Synced;
    let written = keep_mode()
        .and_then(|()| fill(&file))
        .and_then(|()| if is_synced { file.sync_all() } else { Ok(()) })
        .and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
        return written;
    }
    if is_synced { File::open(directory_of(target))?.sync_all() } else { Ok(()) }
}

/// A new file in the same directory, where a rename replaces the target at once, and its path.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    if target.with_file_name(Manifest::FILE_NAME).exists() {
        return Err(io::Error::other("it would lie inside a dataset"));
    }
    // A process of the same number that was killed, as in a container that began again, may have left its own behind.
    let names = (0..TEMPORARY_NAMES).map(|number| temporary_name(name, number));
    let mut created = Err(io::ErrorKind::AlreadyExists.into());
    for temporary in names.map(|name| target.with_file_name(name)) {
        created = File::options().write(true).create_new(true).open(&temporary).map(|file| (temporary, file));
        if !matches!(&created, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    created
}

fn directory_of(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `.NAME.1234.0.tmp`.
fn temporary_name(name: &OsStr, number: u32) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.{number}.tmp", std::process::id()));
    temporary
}
