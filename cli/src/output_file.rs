//! A file that appears under its name only once it is whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use grainstore_format::{Manifest, escape_bytes};

/// Writes `bytes` to the file `path` through a temporary name beside it. A file that stands there is replaced; what
/// is no regular file, such as a pipe, is written to directly.
///
/// # Errors
/// Where the file cannot be written; then what stood there before still does.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // A link stays a link: the file that it names is replaced.
        Ok(metadata) if metadata.is_file() => fs::canonicalize(path).and_then(|target| replace(&target, bytes)),
        Ok(_) => fs::OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(path, bytes),
        Err(error) => Err(error),
    };
    written.with_context(|| format!("{}: cannot be written", escape_bytes(path.as_os_str().as_encoded_bytes())))
}

fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_beside(target)?;
    if temporary.with_file_name(Manifest::FILE_NAME).exists() {
        return Err(io::Error::other("it would lie inside a dataset"));
    }
    let file = File::options().write(true).create_new(true).open(&temporary)?;
    let keep_mode = || match fs::metadata(target) {
        Ok(replaced) => file.set_permissions(replaced.permissions()),
        Err(_) => Ok(()),
    };
    let written = keep_mode().and_then(|()| (&file).write_all(bytes)).and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// `.NAME.1234.tmp` in the same directory, where a rename replaces the target at once.
fn temporary_beside(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    Ok(target.with_file_name(temporary))
}
