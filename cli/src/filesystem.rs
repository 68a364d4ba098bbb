//! The storage of a folder: file system, device, free space.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use grainstore_format::{escape_bytes, shown_path};
use rustix::fs::statvfs;
use serde::Serialize;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FileSystem {
    /// Its type: "ext4".
    pub(crate) kind: String,
    /// The device that it is on: "/dev/nvme0n1p2".
    pub(crate) device: String,
}

impl FileSystem {
    /// The file system of an existing folder; "unknown" if the system does not report it.
    pub(crate) fn of(folder: &Path) -> Self {
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        find(&mounts, &folder).unwrap_or_else(|| Self { kind: "unknown".to_owned(), device: "unknown".to_owned() })
    }

    /// Whether its files are in memory: then nothing on it is ever cold.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.kind.as_str(), "tmpfs" | "ramfs")
    }
}

/// Bytes that this user can still write in a folder.
///
/// # Errors
/// If the system does not report it.
pub(crate) fn free_bytes(folder: &Path) -> anyhow::Result<u64> {
    let stat = statvfs(folder).with_context(|| format!("{}: cannot determine its free space", shown_path(folder)))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The mount with the longest mount point that contains `folder`; of equal ones the last, which hides the others.
fn find(mounts: &[u8], folder: &Path) -> Option<FileSystem> {
    let mounts = mounts.split(|&byte| byte == b'\n').filter_map(mount);
    let around = mounts.filter(|(point, _)| folder.starts_with(point));
    around.max_by_key(|(point, _)| point.as_os_str().len()).map(|(_, file_system)| file_system)
}

/// Parses a line: numbers and paths, of which the fifth is the mount point; type and device follow a dash.
fn mount(line: &[u8]) -> Option<(PathBuf, FileSystem)> {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let dash = words.iter().position(|&word| word == b"-")?;
    let shown = |word: &[u8]| escape_bytes(&unescaped(word));
    let kind = shown(words.get(dash + 1)?);
    let device = shown(words.get(dash + 2)?);
    let point = OsString::from_vec(unescaped(words.get(4)?));
    Some((point.into(), FileSystem { kind, device }))
}

/// Decodes a path: blanks and similar characters are written as a backslash and three octal digits.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, after @ ..] = rest {
        let octal = after.get(..3).filter(|_| *first == b'\\').and_then(octal);
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    bytes
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
30 22 0:26 / /tmp rw - tmpfs tmpfs rw,size=1g
31 22 8:3 / /data rw - xfs /dev/sdb1 rw
32 31 8:4 / /data/my\\040disk rw master:1 - btrfs /dev/sdc1 rw
33 22 8:5 / /data rw - f2fs /dev/sdd1 rw
not a mount
";

    fn kind(folder: &str) -> String {
        find(MOUNTS.as_bytes(), Path::new(folder)).unwrap().kind
    }

    #[test]
    fn a_folder_is_on_the_innermost_mount_that_was_mounted_last() {
        assert_eq!(kind("/home/me"), "ext4");
        assert_eq!(kind("/tmp/x"), "tmpfs");
        assert_eq!(kind("/tmpx"), "ext4");
        assert_eq!(kind("/data/x"), "f2fs");
        assert_eq!(kind("/data/my disk/x"), "btrfs");
    }

    #[test]
    fn this_folder_is_on_a_file_system_with_a_size() {
        let file_system = FileSystem::of(Path::new("."));
        assert!(!file_system.kind.is_empty() && !file_system.device.is_empty());
        assert!(free_bytes(Path::new(".")).is_ok());
    }

    #[test]
    fn a_backslash_without_digits_stays() {
        assert_eq!(unescaped(br"a\040b\x\777\12"), br"a b\x\777\12");
    }
}
