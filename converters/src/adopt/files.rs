//! The files that are adopted, and their names in the manifest.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use grainstore_format::shown_path;
use grainstore_sources::{Bad, Skipped, Source};

use super::AdoptOptions;
use crate::{ConvertError, OnBad};

/// A file and its parts.
pub(super) struct OwnFile {
    pub(super) path: PathBuf,
    /// Its name in the manifest.
    pub(super) name: String,
    pub(super) number: usize,
    pub(super) parts: Vec<usize>,
}

/// The files of a source, and the missing ones that may be skipped.
pub(super) struct AdoptedFiles {
    pub(super) files: Vec<OwnFile>,
    pub(super) skipped: Vec<Skipped>,
}

impl AdoptedFiles {
    /// # Errors
    /// Where one cannot be found, or is in a folder that the dataset may not refer to.
    pub(super) fn of(source: &dyn Source, destination: &Path, options: &AdoptOptions) -> Result<Self, ConvertError> {
        let mut found = Self { files: Vec::new(), skipped: Vec::new() };
        let home = home_of(destination)?;
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut last: Option<(&Path, usize)> = None;
        for (part, path) in source.description().parts.iter().map(|part| part.path.as_path()).enumerate() {
            if let Some((_, file)) = last.filter(|(last, _)| *last == path) {
                found.files[file].parts.push(part);
                continue;
            }
            let real = match fs::canonicalize(path) {
                Ok(real) => real,
                Err(error) if options.on_bad == OnBad::Skip => {
                    found.skipped.push(Bad::file(path, &error).into());
                    continue;
                }
                Err(error) => return Err(Bad::file(path, &error).into()),
            };
            let name = manifest_name(path, real, &home, options.allow_external)?;
            let number = *numbers.entry(name.clone()).or_insert(found.files.len());
            if number == found.files.len() {
                found.files.push(OwnFile { path: path.to_owned(), name, number, parts: Vec::new() });
            }
            found.files[number].parts.push(part);
            last = Some((path, number));
        }
        Ok(found)
    }
}

/// The folder of the new dataset, with links resolved.
fn home_of(destination: &Path) -> Result<PathBuf, ConvertError> {
    let parent = grainstore_host::directory_of(destination);
    fs::canonicalize(parent).map_err(|source| ConvertError::no_parent(parent, destination, source))
}

/// The path of a file in the manifest, with links resolved: `../x` beside the dataset, absolute elsewhere.
fn manifest_name(path: &Path, real: PathBuf, home: &Path, allow_external: bool) -> Result<String, ConvertError> {
    let named = match real.strip_prefix(home) {
        Ok(inside) => Path::new("..").join(inside),
        Err(_) if allow_external => real,
        Err(_) => {
            let why = format!("it is outside {}, the folder of the new dataset", shown_path(home));
            return Err(ConvertError::Outside { path: path.to_owned(), why });
        }
    };
    named.into_os_string().into_string().map_err(|_| ConvertError::Refused {
        path: path.to_owned(),
        why: "its path is not UTF-8, so the manifest cannot store it: rename it".into(),
    })
}
