//! Checks where a dataset may be written: not inside the data that is packed, and not over it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use grainstore_writer::WriteError;

use crate::ConvertError;

/// Checks, before anything is read or written, whether `destination` can be made of `source`.
///
/// A conversion checks this too. A caller that first lists a large source wants to know before. Links are followed, and
/// the paths that they lead to are compared.
///
/// # Errors
/// Where one is inside the other, where the destination exists and is not to be replaced, or where the folder that it
/// is to be in does not exist.
pub fn check_destination(source: &Path, destination: &Path, overwrite: bool) -> Result<(), ConvertError> {
    let paths = DatasetPaths::of(destination)?;
    let origin_path = match fs::canonicalize(source) {
        Ok(path) => path,
        // Opening the source reports the error.
        Err(_) => return Ok(()),
    };
    let destination_path = destination.to_path_buf();
    let origin = source.to_path_buf();
    if paths.path.starts_with(&origin_path) {
        return Err(ConvertError::DestinationInsideSource { destination: destination_path, origin });
    }
    // The writer works in NAME.partial, and empties one that an interrupted writer left.
    if [&paths.path, &paths.partial].into_iter().any(|taken| origin_path.starts_with(taken)) {
        return Err(ConvertError::SourceInsideDestination { origin, destination: destination_path });
    }
    if !overwrite && fs::symlink_metadata(destination).is_ok() {
        return Err(WriteError::DestinationExists { path: destination_path }.into());
    }
    Ok(())
}

/// The paths that a dataset takes on disk.
struct DatasetPaths {
    path: PathBuf,
    partial: PathBuf,
}

impl DatasetPaths {
    fn of(destination: &Path) -> Result<Self, ConvertError> {
        let Some(name) = destination.file_name() else {
            let why = "its path has no name for the dataset".into();
            return Err(WriteError::NotReplaceable { path: destination.to_path_buf(), why }.into());
        };
        let folder = match destination.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let not_there = |source: io::Error| ConvertError::no_parent(folder, destination, source);
        let folder = fs::canonicalize(folder).map_err(not_there)?;
        let named = folder.join(name);
        let mut partial = named.clone().into_os_string();
        partial.push(".partial");
        // The name may be a link into the source.
        let path = fs::canonicalize(&named).unwrap_or(named);
        Ok(Self { path, partial: partial.into() })
    }
}
