//! Output files of the command: an option names them, and they appear only when they are complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use grainstore_format::{Manifest, shown_path};
use grainstore_host::{Durability, NotRegular, create_beside, replace_file};

/// Writes `bytes` to the file `path` through a temporary name beside it. An existing file is replaced; anything that is
/// not a regular file, such as a pipe, is written to directly.
///
/// # Errors
/// If the file cannot be written; then an existing file is unchanged.
pub(crate) fn write(path: &Path, bytes: &[u8], durability: Durability) -> anyhow::Result<()> {
    write_with(path, durability, |mut file| file.write_all(bytes))
}

/// Like [`write()`], but with the content that `fill` writes.
///
/// # Errors
/// As [`write()`], and if `fill` fails.
pub(crate) fn write_with(
    path: &Path,
    durability: Durability,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> anyhow::Result<()> {
    let written = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // A symbolic link is kept: the file that it points to is replaced.
        Ok(metadata) if metadata.is_file() => {
            fs::canonicalize(path).and_then(|target| replace(&target, fill, durability))
        }
        Ok(_) => fs::OpenOptions::new().write(true).open(path).and_then(|file| fill(&file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(path, fill, durability),
        Err(error) => Err(error),
    };
    written.with_context(|| cannot_be_written(path))
}

/// Checks whether [`write()`] could write the regular file `path`, and leaves nothing behind.
///
/// # Errors
/// If it could not be written.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let checked = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => fs::canonicalize(path).and_then(|target| try_beside(&target)),
        Ok(_) => Err(io::Error::other(NotRegular)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => try_beside(path),
        Err(error) => Err(error),
    };
    checked.with_context(|| cannot_be_written(path))
}

fn cannot_be_written(path: &Path) -> String {
    format!("{}: cannot be written", shown_path(path))
}

fn replace(target: &Path, fill: impl FnOnce(&File) -> io::Result<()>, durability: Durability) -> io::Result<()> {
    outside_datasets(target)?;
    replace_file(target, durability, fill)
}

/// Creates a temporary file beside `target`, and removes it again.
fn try_beside(target: &Path) -> io::Result<()> {
    outside_datasets(target)?;
    let (temporary, _) = create_beside(target)?;
    fs::remove_file(temporary)
}

fn outside_datasets(target: &Path) -> io::Result<()> {
    if target.with_file_name(Manifest::FILE_NAME).exists() {
        return Err(io::Error::other("it would be inside a dataset"));
    }
    Ok(())
}
