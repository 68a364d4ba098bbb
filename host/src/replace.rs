//! Files and folders that appear under their name only when they are whole: made beside it under another name, synced,
//! renamed.
//!
//! - [`replace_file`]: a file that may replace another.
//! - [`rename_new`], [`sync_directory`]: the single steps, for callers that write more than one file before they rename.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Names that are tried for a temporary file.
const TEMPORARY_NAMES: u32 = 16;

/// Whether a file must be on the disk before it appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The system may write it out later.
    Later,
    /// It is synced before it gets its name, and the name with it.
    Synced,
}

/// Writes what `fill` writes to the file `target`, through a temporary name beside it. It replaces a file that exists
/// under the name, and keeps its permissions.
///
/// # Errors
/// If the file cannot be written, or `fill` fails; a file that existed before is unchanged then.
pub fn replace_file(
    target: &Path,
    durability: Durability,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let (temporary, file) = create_beside(target)?;
    let written = write_and_rename(target, durability, &temporary, &file, fill);
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
        return written;
    }
    match durability {
        Durability::Later => Ok(()),
        Durability::Synced => sync_directory(directory_of(target)),
    }
}

fn write_and_rename(
    target: &Path,
    durability: Durability,
    temporary: &Path,
    file: &File,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    if let Ok(replaced) = fs::metadata(target) {
        file.set_permissions(replaced.permissions())?;
    }
    fill(file)?;
    if durability == Durability::Synced {
        file.sync_all()?;
    }
    fs::rename(temporary, target)
}

/// Makes a new empty file in the directory of `target`, so that a rename can replace `target` in one step.
///
/// # Errors
/// If no file can be made there.
pub fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut number = 0;
    loop {
        let temporary = target.with_file_name(temporary_name(name, number));
        match File::options().write(true).create_new(true).open(&temporary) {
            // A killed process with the same id, as in a restarted container, may have left its file behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number + 1 < TEMPORARY_NAMES => number += 1,
            created => return Ok((temporary, created?)),
        }
    }
}

/// `.NAME.1234.0.tmp`.
fn temporary_name(name: &OsStr, number: u32) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.{number}.tmp", std::process::id()));
    temporary
}

/// Gives a file or folder a new name in one step, and replaces nothing.
///
/// # Errors
/// `AlreadyExists` or `DirectoryNotEmpty` if the name exists.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Some network file systems do not have this rename. A plain rename never replaces a folder that is not empty. It
        // does replace a file, so a file gets a second name instead (a hard link), which never replaces anything.
        Err(Errno::INVAL | Errno::NOSYS) if from.is_dir() => fs::rename(from, to),
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes the names in a directory durable.
///
/// # Errors
/// What the system reports.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The directory that holds `path`: its parent, or `.` if the path is a plain name.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for (durability, text) in [(Durability::Later, "one"), (Durability::Synced, "two")] {
            replace_file(&path, durability, |mut file| file.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        }
        replace_file(&path, Durability::Later, |mut file| file.write_all(b"three")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_file_that_cannot_be_filled_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        let error = replace_file(&path, Durability::Synced, |_| Err(io::Error::other("no"))).unwrap_err();
        assert_eq!(error.to_string(), "no");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn leftovers_of_killed_processes_are_skipped_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for _ in 0..TEMPORARY_NAMES {
            create_beside(&path).unwrap();
        }
        assert_eq!(create_beside(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_new_name_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, three] = ["one", "two", "three"].map(|name| folder.path().join(name));
        fs::write(&one, "1").unwrap();
        fs::write(&two, "2").unwrap();
        assert_eq!(rename_new(&one, &two).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        rename_new(&one, &three).unwrap();
        assert_eq!((fs::read_to_string(&two).unwrap(), fs::read_to_string(&three).unwrap()), ("2".into(), "1".into()));
    }

    #[test]
    fn a_plain_name_is_in_the_current_directory() {
        assert_eq!(directory_of(Path::new("x")), Path::new("."));
        assert_eq!(directory_of(Path::new("a/x")), Path::new("a"));
    }
}
