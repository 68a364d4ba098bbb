//! Reads a folder tree in parallel, and joins the names to sorted relative paths.
//!
//! A task reads one folder and spawns a task for each folder inside it. It stores what it found in a
//! slot. Its parent made the slots of its folders side by side, in name order, so the walk finds
//! them in any order in which the tasks ended.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, FileType};
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rayon::Scope;
use rayon::slice::ParallelSliceMut;

use crate::junk::{is_junk_file, is_junk_folder};

/// With more names than this, a folder is sorted by several threads. A thread that waits for its
/// share may begin another folder on the same stack, so only few folders should reach the limit.
const SORT_ALONE_MAX: usize = 100_000;

/// Reads `root` and all folders below it. Unreadable paths come in no particular order.
pub(super) fn scan(root: &Path) -> (Vec<Folder>, ScanCounts) {
    let scan = Scan::default();
    let task = Task { slot: 0, folder: root.to_path_buf(), prefix_len: 0 };
    rayon::scope(|scope| scan.visit(scope, task));
    let ScanResult { folders, tally } = scan.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    (folders, tally)
}

/// The relative paths of all files, sorted, end to end; and where each starts, the end included.
pub(super) fn join(folders: Vec<Folder>) -> (Vec<u8>, Vec<usize>) {
    let paths_len = folders.iter().map(|folder| folder.paths_len).sum();
    let file_count: usize = folders.iter().map(|folder| folder.file_count).sum();
    let mut starts = Vec::with_capacity(file_count + 1);
    starts.push(0);
    let mut join = Join { folders, arena: Vec::with_capacity(paths_len), starts, prefix: Vec::new() };
    join.folder(0);
    (join.arena, join.starts)
}

/// What was found besides files and folders.
#[derive(Default)]
pub(super) struct ScanCounts {
    pub(super) unreadable: Vec<(PathBuf, io::Error)>,
    pub(super) skipped_dir_links: u64,
    pub(super) skipped_special: u64,
    pub(super) skipped_junk: u64,
}

impl ScanCounts {
    fn add(&mut self, mut other: Self) {
        self.unreadable.append(&mut other.unreadable);
        self.skipped_dir_links += other.skipped_dir_links;
        self.skipped_special += other.skipped_special;
        self.skipped_junk += other.skipped_junk;
    }
}

/// All that the tasks have found so far.
struct ScanResult {
    /// Slot 0 is the root's; a slot is empty until its task has ended.
    folders: Vec<Folder>,
    tally: ScanCounts,
}

/// The parallel part: every folder is a task that spawns the tasks of the folders inside it.
struct Scan {
    found: Mutex<ScanResult>,
}

impl Default for Scan {
    fn default() -> Self {
        Self { found: Mutex::new(ScanResult { folders: vec![Folder::default()], tally: ScanCounts::default() }) }
    }
}

impl Scan {
    fn visit<'scope>(&'scope self, scope: &Scope<'scope>, task: Task) {
        let visit = Visit::read(&task);
        let tasks = visit.tasks(&task);
        let first_slot = self.store(task.slot, visit, tasks.len());
        for inside in tasks {
            let inside = Task { slot: first_slot + inside.slot, ..inside };
            scope.spawn(move |scope| self.visit(scope, inside));
        }
    }

    /// Stores what a task found and makes slots for the folders inside; returns the first of these.
    fn store(&self, slot: usize, mut visit: Visit, folder_count: usize) -> usize {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let first_slot = found.folders.len();
        found.folders.resize_with(first_slot + folder_count, Folder::default);
        visit.folder.first_slot = first_slot;
        found.folders[slot] = visit.folder;
        found.tally.add(visit.tally);
        first_slot
    }
}

/// A folder to read.
struct Task {
    slot: usize,
    folder: PathBuf,
    /// Length of its path below the root and the '/' after it, in bytes.
    prefix_len: usize,
}

/// What one task has found.
#[derive(Default)]
struct Visit {
    folder: Folder,
    tally: ScanCounts,
}

impl Visit {
    fn read(task: &Task) -> Self {
        let mut visit = Self::default();
        if let Err(error) = visit.add_all(&task.folder) {
            visit.tally.unreadable.push((task.folder.clone(), error));
        }
        visit.folder.finish(task.prefix_len);
        visit
    }

    fn add_all(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if let Err(error) = self.add(&entry) {
                self.tally.unreadable.push((entry.path(), error));
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: &DirEntry) -> io::Result<()> {
        match EntryKind::of(entry)? {
            EntryKind::File if is_junk_file(entry.file_name().as_bytes()) => self.tally.skipped_junk += 1,
            EntryKind::Folder if is_junk_folder(entry.file_name().as_bytes()) => self.tally.skipped_junk += 1,
            EntryKind::File => self.folder.add(&entry.file_name(), false)?,
            EntryKind::Folder => self.folder.add(&entry.file_name(), true)?,
            EntryKind::FolderLink => self.tally.skipped_dir_links += 1,
            EntryKind::Special => self.tally.skipped_special += 1,
        }
        Ok(())
    }

    /// The tasks for the folders inside, in name order; their slots count from 0.
    fn tasks(&self, task: &Task) -> Vec<Task> {
        let folders = self.folder.children.iter().filter(|child| child.is_folder);
        let names = folders.map(|child| self.folder.name(child));
        let inside = |(slot, name): (usize, &[u8])| Task {
            slot,
            // Without the '/' that the sort needed.
            folder: task.folder.join(OsStr::from_bytes(&name[..name.len() - 1])),
            prefix_len: task.prefix_len + name.len(),
        };
        names.enumerate().map(inside).collect()
    }
}

/// What one entry of a folder is to the listing.
enum EntryKind {
    File,
    Folder,
    FolderLink,
    Special,
}

impl EntryKind {
    fn of(entry: &DirEntry) -> io::Result<Self> {
        let own = entry.file_type()?;
        if !own.is_symlink() {
            return Ok(Self::of_type(own));
        }
        Ok(match Self::of_type(fs::metadata(entry.path())?.file_type()) {
            Self::Folder => Self::FolderLink,
            other => other,
        })
    }

    fn of_type(kind: FileType) -> Self {
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Folder
        } else {
            Self::Special
        }
    }
}

/// A name in a folder's `names`.
struct Child {
    start: usize,
    len: u16,
    is_folder: bool,
}

/// The files and folders found in one folder.
#[derive(Default)]
pub(super) struct Folder {
    /// End to end; a folder's name is followed by '/'.
    names: Vec<u8>,
    children: Vec<Child>,
    /// The slot of the first folder among the children; the others follow in order.
    first_slot: usize,
    file_count: usize,
    /// Length of the relative paths of the files together, in bytes.
    paths_len: usize,
}

impl Folder {
    fn name(&self, child: &Child) -> &[u8] {
        &self.names[child.start..][..usize::from(child.len)]
    }

    fn add(&mut self, name: &OsStr, is_folder: bool) -> io::Result<()> {
        let start = self.names.len();
        let slash: &[u8] = if is_folder { b"/" } else { b"" };
        // Names end at 255 bytes on Linux; one of more than 65,535 bytes is an error.
        let len = u16::try_from(name.len() + slash.len()).map_err(|_| io::ErrorKind::InvalidFilename)?;
        self.names.extend_from_slice(name.as_bytes());
        self.names.extend_from_slice(slash);
        self.children.push(Child { start, len, is_folder });
        Ok(())
    }

    fn finish(&mut self, prefix_len: usize) {
        let mut children = mem::take(&mut self.children);
        let by_name = |a: &Child, b: &Child| self.name(a).cmp(self.name(b));
        if children.len() > SORT_ALONE_MAX {
            children.par_sort_unstable_by(by_name);
        } else {
            children.sort_unstable_by(by_name);
        }
        children.shrink_to_fit();
        self.names.shrink_to_fit();
        for file in children.iter().filter(|child| !child.is_folder) {
            self.file_count += 1;
            self.paths_len += prefix_len + usize::from(file.len);
        }
        self.children = children;
    }
}

/// The walk that joins names to relative paths.
struct Join {
    folders: Vec<Folder>,
    arena: Vec<u8>,
    starts: Vec<usize>,
    prefix: Vec<u8>,
}

impl Join {
    /// Recursion is no deeper than folders nest, and the system opens no path past 4096 bytes.
    fn folder(&mut self, slot: usize) {
        let folder = mem::take(&mut self.folders[slot]);
        let mut next_slot = folder.first_slot;
        for child in &folder.children {
            let name = folder.name(child);
            if child.is_folder {
                let prefix_len = self.prefix.len();
                self.prefix.extend_from_slice(name);
                self.folder(next_slot);
                self.prefix.truncate(prefix_len);
                next_slot += 1;
            } else {
                self.arena.extend_from_slice(&self.prefix);
                self.arena.extend_from_slice(name);
                self.starts.push(self.arena.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_sorted_with_its_slash() {
        let mut folder = Folder::default();
        for (name, is_folder) in [("a", true), ("a-b", false), ("a0", false), ("a-", true)] {
            folder.add(OsStr::new(name), is_folder).unwrap();
        }
        folder.finish(5);
        let names: Vec<&[u8]> = folder.children.iter().map(|child| folder.name(child)).collect();
        assert_eq!(names, [&b"a-/"[..], b"a-b", b"a/", b"a0"]);
        assert_eq!((folder.file_count, folder.paths_len), (2, 15));
    }

    #[test]
    fn a_folder_large_enough_for_several_threads_is_sorted_too() {
        let mut folder = Folder::default();
        let count = u32::try_from(SORT_ALONE_MAX).unwrap() + 1;
        for number in 0..count {
            folder.add(OsStr::new(&format!("{:08x}", number.wrapping_mul(0x9e37_79b1))), false).unwrap();
        }
        folder.finish(0);
        let names: Vec<&[u8]> = folder.children.iter().map(|child| folder.name(child)).collect();
        assert!(names.is_sorted_by(|a, b| a < b));
        assert_eq!(names.len(), SORT_ALONE_MAX + 1);
    }

    #[test]
    fn a_name_with_a_length_past_16_bits_is_an_error_and_is_not_stored() {
        let mut folder = Folder::default();
        let long = "x".repeat(65_536);
        assert!(folder.add(OsStr::new(&long), false).is_err());
        assert!(folder.add(OsStr::new(&long[..65_535]), true).is_err());
        folder.add(OsStr::new(&long[..65_535]), false).unwrap();
        assert_eq!((folder.names.len(), folder.children.len()), (65_535, 1));
    }

    #[test]
    fn a_name_held_during_the_scan_costs_16_bytes() {
        assert_eq!(size_of::<Child>(), 16);
    }
}
