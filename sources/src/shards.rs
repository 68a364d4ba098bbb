//! Expands the paths that a user names to files: globs, ranges in braces, folders of shards.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grainstore_format::{UrlPath, shown_path};

use crate::SourceError;

/// The largest number of paths from the braces of a pattern.
const BRACE_MAX: usize = 1_000_000;

/// The files and folders that `named` refers to. Each is a path if that exists, else a glob (`*`, `?`, `[a-z]`) or a
/// range in braces (`train-{00000..00127}.tar`). The order is the given one; the results of a glob are sorted by name.
///
/// # Errors
/// Where one matches nothing.
pub fn expand(named: &[PathBuf]) -> Result<Vec<PathBuf>, SourceError> {
    let mut found = Vec::new();
    for path in named {
        if fs::symlink_metadata(path).is_ok() {
            found.push(path.clone());
            continue;
        }
        UrlPath::refuse(path).map_err(SourceError::Url)?;
        let before = found.len();
        for alternative in braces(path)? {
            found.extend(matching(&alternative)?);
        }
        if found.len() == before {
            let why = "there is no such file or folder, and nothing matches it as a pattern";
            let error = if matches_nothing(path) {
                SourceError::NoSamples { path: path.clone(), why: why.into() }
            } else {
                refused(path, why)
            };
            return Err(error);
        }
    }
    check_distinct(&found)?;
    Ok(found)
}

/// Whether the path is a pattern for names in a folder that exists.
fn matches_nothing(pattern: &Path) -> bool {
    let plain = pattern.ancestors().skip(1).find(|above| !has_glob(above));
    has_glob(pattern) && plain.is_some_and(|folder| folder.as_os_str().is_empty() || folder.is_dir())
}

/// Refuses a file that is named twice: it would be packed twice.
fn check_distinct(paths: &[PathBuf]) -> Result<(), SourceError> {
    let mut seen = HashSet::with_capacity(paths.len());
    let twice = paths.iter().find(|path| !seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())));
    twice.map_or(Ok(()), |path| Err(refused(path, "it is named twice")))
}

/// What a folder has that may be shards.
pub struct FolderFiles {
    /// Regular files and links to them, sorted by name.
    pub files: Vec<PathBuf>,
    /// The first that is not one, such as a link to nothing or a pipe: a shard may be missing.
    pub unusable: Option<SourceError>,
}

/// The files in a folder that may be shards. Names that begin with `.` or `_`, such as logs and markers, are ignored, and
/// so are folders.
///
/// # Errors
/// Where it cannot be listed.
pub fn files_in(folder: &Path) -> Result<FolderFiles, SourceError> {
    let unlisted = |source| SourceError::Path { path: folder.to_owned(), source };
    let mut files = Vec::new();
    let mut unusable = None;
    for entry in fs::read_dir(folder).map_err(unlisted)? {
        let path = entry.map_err(unlisted)?.path();
        let marked = path.file_name().is_none_or(|name| matches!(name.as_bytes().first(), Some(b'.' | b'_')));
        if marked {
            continue;
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => files.push(path),
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => _ = unusable.get_or_insert_with(|| refused(&path, "it is not a regular file, and no shard")),
            // Removed since the folder was listed.
            Err(_) if fs::symlink_metadata(&path).is_err() => {}
            Err(source) => _ = unusable.get_or_insert(SourceError::Path { path, source }),
        }
    }
    files.sort_unstable_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    Ok(FolderFiles { files, unusable })
}

impl FolderFiles {
    /// The files, as shards.
    ///
    /// # Errors
    /// Where a shard may be missing.
    pub fn into_shards(self) -> Result<Vec<PathBuf>, SourceError> {
        self.unusable.map_or(Ok(self.files), Err)
    }
}

fn matching(pattern: &Path) -> Result<Vec<PathBuf>, SourceError> {
    if fs::symlink_metadata(pattern).is_ok() {
        return Ok(vec![pattern.to_owned()]);
    }
    // A path that is not UTF-8 is not a pattern.
    let Some(text) = pattern.to_str().filter(|text| text.contains(['*', '?', '['])) else { return Ok(Vec::new()) };
    let paths = glob::glob(text).map_err(|error| refused(pattern, &format!("it is not a valid pattern: {error}")))?;
    let mut found = Vec::new();
    for path in paths {
        found.push(path.map_err(|error| SourceError::Path { path: error.path().to_owned(), source: error.into() })?);
    }
    Ok(found)
}

/// `a{08..10}b` is `a08b`, `a09b`, `a10b`; a path without such a range is itself.
fn braces(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let Some((before, range, after)) = path.to_str().and_then(split_brace) else { return Ok(vec![path.to_owned()]) };
    let Some((first, last)) = range.split_once("..") else { return Ok(vec![path.to_owned()]) };
    let (Ok(from), Ok(to)) = (first.parse::<u64>(), last.parse::<u64>()) else { return Ok(vec![path.to_owned()]) };
    let too_many = || refused(path, &format!("{{{range}}} is not a range of at most {BRACE_MAX} ascending names"));
    if to < from || to - from >= BRACE_MAX as u64 {
        return Err(too_many());
    }
    // A glob lists folders for each path, so fewer of these are allowed.
    let count_max = if has_glob(path) { BRACE_MAX / 1000 } else { BRACE_MAX };
    let mut paths = Vec::new();
    for number in from..=to {
        let one = PathBuf::from(format!("{before}{number:0width$}{after}", width = first.len()));
        paths.extend(braces(&one)?);
        if paths.len() > count_max {
            return Err(too_many());
        }
    }
    // A gap in a range is a missing shard.
    if let Some(missing) = paths.iter().find(|path| !has_glob(path) && fs::symlink_metadata(path).is_err()) {
        return Err(refused(missing, &format!("there is no such file; {} names it", shown_path(path))));
    }
    Ok(paths)
}

fn has_glob(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| b"*?[".contains(byte))
}

fn split_brace(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (range, after) = rest.split_once('}')?;
    Some((before, range, after))
}

fn refused(path: &Path, why: &str) -> SourceError {
    SourceError::Refused { path: path.to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: Vec<PathBuf>, root: &Path) -> Vec<String> {
        paths.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn shards() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a-08.tar", "a-09.tar", "a-10.tar", "b.tar", "_SUCCESS", ".hidden", "x[1].tar"] {
            fs::write(folder.path().join(name), b"x").unwrap();
        }
        fs::create_dir(folder.path().join("below")).unwrap();
        folder
    }

    #[test]
    fn globs_and_ranges_expand_to_files_in_order() {
        let folder = shards();
        let expanded = |pattern: &str| expand(&[folder.path().join(pattern)]).map(|found| names(found, folder.path()));
        assert_eq!(expanded("a-*.tar").unwrap(), ["a-08.tar", "a-09.tar", "a-10.tar"]);
        assert_eq!(expanded("a-{08..10}.tar").unwrap(), ["a-08.tar", "a-09.tar", "a-10.tar"]);
        assert_eq!(expanded("x[1].tar").unwrap(), ["x[1].tar"], "a file is itself, whatever it looks like");
        assert_eq!(expanded("below").unwrap(), ["below"]);
        let twice = expand(&[folder.path().join("b.tar"), folder.path().join("./*.tar")]);
        assert!(twice.unwrap_err().to_string().ends_with("b.tar: it is named twice"));
    }

    #[test]
    fn a_pattern_without_matches_is_refused_by_name() {
        let folder = shards();
        let error = |pattern: &str| expand(&[folder.path().join(pattern)]).unwrap_err().to_string();
        assert!(error("c-*.tar").contains("nothing matches it"), "{}", error("c-*.tar"));
        assert!(error("a-{08..11}.tar").contains("a-11.tar: there is no such file"), "{}", error("a-{08..11}.tar"));
        assert!(error("a-{10..08}.tar").contains("not a range"));
        assert!(error("a-{0..99999999999}.tar").contains("not a range"));
    }

    #[test]
    fn a_folder_of_shards_has_the_files_that_are_not_markers() {
        let folder = shards();
        let files = files_in(folder.path()).unwrap().into_shards().unwrap();
        assert_eq!(names(files, folder.path()), ["a-08.tar", "a-09.tar", "a-10.tar", "b.tar", "x[1].tar"]);
    }

    #[test]
    fn a_shard_that_is_a_link_to_nothing_is_an_error() {
        let folder = shards();
        std::os::unix::fs::symlink("nowhere", folder.path().join("c.tar")).unwrap();
        let error = files_in(folder.path()).unwrap().into_shards().unwrap_err().to_string();
        assert!(error.contains("c.tar: cannot be read: No such file"), "{error}");
    }
}
