//! Where a dataset may be made: not inside the data that it is made of, and not in its place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use grainstore_writer::WriteError;

use crate::ConvertError;

/// Checks, before anything is read or written, whether `destination` can be made of `source`.
///
/// [`convert`](crate::convert) checks this too; a caller that first lists a large source wants to know before.
/// Links are followed: it is the places themselves that are compared.
///
/// # Errors
/// Where one is inside the other, something is under the destination's name and is not to be replaced, or the
/// folder it is to be in does not exist.
pub fn check_destination(source: &Path, destination: &Path, overwrite: bool) -> Result<(), ConvertError> {
    let place = DatasetPaths::of(destination)?;
    let origin_place = match fs::canonicalize(source) {
        Ok(path) => path,
        // Opening the source reports the error, in words that fit its format.
        Err(_) => return Ok(()),
    };
    let destination_path = destination.to_path_buf();
    let origin = source.to_path_buf();
    if place.path.starts_with(&origin_place) {
        return Err(ConvertError::DestinationInsideSource { destination: destination_path, origin });
    }
    // The writer works in NAME.partial, and empties one that an interrupted writer left.
    if [&place.path, &place.partial].into_iter().any(|taken| origin_place.starts_with(taken)) {
        return Err(ConvertError::SourceInsideDestination { origin, destination: destination_path });
    }
    if !overwrite && fs::symlink_metadata(destination).is_ok() {
        return Err(WriteError::DestinationExists { path: destination_path }.into());
    }
    Ok(())
}

/// The places that a dataset takes on disk.
struct DatasetPaths {
    path: PathBuf,
    partial: PathBuf,
}

impl DatasetPaths {
    fn of(destination: &Path) -> Result<Self, ConvertError> {
        let Some(name) = destination.file_name() else {
            let why = "it is not a name for a dataset".into();
            return Err(WriteError::NotReplaceable { path: destination.to_path_buf(), why }.into());
        };
        let folder = match destination.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let not_there = |source: io::Error| ConvertError::NoParent { path: folder.to_path_buf(), source };
        let folder = fs::canonicalize(folder).map_err(not_there)?;
        let named = folder.join(name);
        let mut partial = named.clone().into_os_string();
        partial.push(".partial");
        // What is under the name may be a link into the source.
        let path = fs::canonicalize(&named).unwrap_or(named);
        Ok(Self { path, partial: partial.into() })
    }
}
