//! A disk in memory that keeps what is synced apart from what is not, and stops or fails at a chosen operation.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use grainstore_writer::{DirectoryLock, EntryKind, Storage, StorageFile};
use tempfile::TempDir;

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The machine stops: this operation and all later ones do nothing.
    Stop,
    /// This operation fails, as on a full disk; later ones work.
    Fail,
}

/// What a crash leaves of names and bytes. What is synced always survives; nothing is assumed of the rest.
#[derive(Clone, Copy, Debug)]
pub enum Image {
    /// Nothing that was not synced.
    Durable,
    /// All names, but no byte that was not synced.
    LiveNames,
    /// Everything.
    Live,
    /// A coin is tossed for each directory's every name and for each file, from this seed.
    Mixed(u64),
}

impl Image {
    pub const ALL: [Self; 7] =
        [Self::Durable, Self::LiveNames, Self::Live, Self::Mixed(1), Self::Mixed(2), Self::Mixed(3), Self::Mixed(4)];

    /// Whether the unsynced state of a name or file survives.
    fn survives(self, what: What<'_>) -> bool {
        match (self, what) {
            (Self::Durable, _) | (Self::LiveNames, What::Bytes(_)) => false,
            (Self::Live, _) | (Self::LiveNames, What::Name(..)) => true,
            (Self::Mixed(seed), what) => {
                let mut hasher = std::hash::DefaultHasher::new();
                (seed, what).hash(&mut hasher);
                hasher.finish() % 2 == 1
            }
        }
    }
}

#[derive(Hash)]
enum What<'a> {
    Name(usize, &'a OsStr),
    Bytes(usize),
}

enum Inode {
    Directory { live: BTreeMap<OsString, usize>, durable: BTreeMap<OsString, usize> },
    File { live: Vec<u8>, synced: Vec<u8> },
}

struct State {
    inodes: Vec<Inode>, // the first is the root
    operations: usize,
    trouble: Option<(usize, Trouble)>,
    locked: Vec<usize>,
}

#[derive(Clone)]
pub struct FakeDisk(Arc<Mutex<State>>);

impl FakeDisk {
    /// An empty disk. `trouble` comes at the operation of that number, counted from 0.
    pub fn new(trouble: Option<(usize, Trouble)>) -> Self {
        let root = Inode::Directory { live: BTreeMap::new(), durable: BTreeMap::new() };
        Self(Arc::new(Mutex::new(State { inodes: vec![root], operations: 0, trouble, locked: vec![] })))
    }

    pub fn operations(&self) -> usize {
        self.lock().operations
    }

    /// Starts the count of operations again, and makes trouble at that operation.
    pub fn set_trouble(&self, trouble: Option<(usize, Trouble)>) {
        let mut state = self.lock();
        state.operations = 0;
        state.trouble = trouble;
        state.locked.clear();
    }

    /// Everything is as if it had been synced.
    pub fn settle(&self) {
        for inode in &mut self.lock().inodes {
            match inode {
                Inode::Directory { live, durable } => durable.clone_from(live),
                Inode::File { live, synced } => synced.clone_from(live),
            }
        }
    }

    /// A disk, without trouble, with what a crash leaves: all of it is durable.
    pub fn after(&self, image: Image) -> Self {
        let (crashed, state) = (Self::new(None), self.lock());
        crashed.lock().inodes = (0..state.inodes.len()).map(|inode| state.survivor(inode, image)).collect();
        drop(state);
        crashed
    }

    /// Every file below a directory, by name; nothing where there is no such directory.
    pub fn files(&self, directory: &Path) -> Option<BTreeMap<String, Vec<u8>>> {
        let mut state = self.lock();
        let names = state.names(directory).ok()?.clone();
        let files = names.into_iter().filter_map(|(name, inode)| match &state.inodes[inode] {
            Inode::File { live, .. } => Some((name.into_string().ok()?, live.clone())),
            Inode::Directory { .. } => None,
        });
        Some(files.collect())
    }

    /// Writes what a crash leaves into a real directory, in memory where the system has a place for it: thousands of
    /// images would spend most of their time waiting for a disk.
    pub fn materialised(&self, image: Image) -> TempDir {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        self.lock().materialise(0, image, folder.path());
        folder
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    /// Counts an operation; the trouble, where this is the one.
    fn step(&mut self) -> io::Result<()> {
        let now = self.operations;
        self.operations += 1;
        match self.trouble {
            Some((at, Trouble::Fail)) if now == at => Err(io::ErrorKind::StorageFull.into()),
            Some((at, Trouble::Stop)) if now >= at => Err(io::Error::other("the machine has stopped")),
            _ => Ok(()),
        }
    }

    /// What a crash leaves of an inode.
    fn survivor(&self, inode: usize, image: Image) -> Inode {
        match &self.inodes[inode] {
            Inode::File { live, synced } => {
                let bytes = if image.survives(What::Bytes(inode)) { live } else { synced };
                Inode::File { live: bytes.clone(), synced: bytes.clone() }
            }
            Inode::Directory { live, durable } => {
                let names: std::collections::BTreeSet<&OsString> = live.keys().chain(durable.keys()).collect();
                let names: BTreeMap<OsString, usize> = names
                    .into_iter()
                    .filter_map(|name| {
                        let from = if image.survives(What::Name(inode, name)) { live } else { durable };
                        from.get(name).map(|&child| (name.clone(), child))
                    })
                    .collect();
                Inode::Directory { live: names.clone(), durable: names }
            }
        }
    }

    fn materialise(&self, inode: usize, image: Image, into: &Path) {
        match &self.inodes[inode] {
            Inode::File { live, synced } => {
                let bytes = if image.survives(What::Bytes(inode)) { live } else { synced };
                std::fs::write(into, bytes).unwrap();
            }
            Inode::Directory { live, durable } => {
                std::fs::create_dir_all(into).unwrap();
                let names: std::collections::BTreeSet<&OsString> = live.keys().chain(durable.keys()).collect();
                for name in names {
                    let from = if image.survives(What::Name(inode, name)) { live } else { durable };
                    if let Some(&child) = from.get(name) {
                        self.materialise(child, image, &into.join(name));
                    }
                }
            }
        }
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        path.components().filter(|part| matches!(part, Component::Normal(_))).try_fold(0, |inode, part| {
            match &self.inodes[inode] {
                Inode::Directory { live, .. } => live.get(part.as_os_str()).copied(),
                Inode::File { .. } => None,
            }
            .ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }

    fn names(&mut self, directory: &Path) -> io::Result<&mut BTreeMap<OsString, usize>> {
        let inode = self.find(directory)?;
        match &mut self.inodes[inode] {
            Inode::Directory { live, .. } => Ok(live),
            Inode::File { .. } => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The names beside `path`, and its own.
    fn place(&mut self, path: &Path) -> io::Result<(&mut BTreeMap<OsString, usize>, OsString)> {
        let name = path.file_name().unwrap_or(OsStr::new("")).to_owned();
        Ok((self.names(path.parent().unwrap_or(Path::new("")))?, name))
    }

    fn add(&mut self, path: &Path, inode: Inode) -> io::Result<usize> {
        let number = self.inodes.len();
        let (names, name) = self.place(path)?;
        names.insert(name, number);
        self.inodes.push(inode);
        Ok(number)
    }
}

struct FakeLock(FakeDisk, usize);

impl DirectoryLock for FakeLock {}

impl Drop for FakeLock {
    fn drop(&mut self) {
        self.0.lock().locked.retain(|&inode| inode != self.1);
    }
}

impl Storage for FakeDisk {
    fn kind(&self, path: &Path) -> io::Result<Option<EntryKind>> {
        let mut state = self.lock();
        state.step()?;
        Ok(state.find(path).ok().map(|inode| match &state.inodes[inode] {
            Inode::Directory { .. } => EntryKind::Directory,
            Inode::File { .. } => EntryKind::File,
        }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let mut state = self.lock();
        state.step()?;
        Ok(state.names(directory)?.keys().cloned().collect())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        if state.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.add(path, Inode::Directory { live: BTreeMap::new(), durable: BTreeMap::new() }).map(|_| ())
    }

    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        let mut state = self.lock();
        state.step()?;
        let inode = state.find(path)?;
        if state.locked.contains(&inode) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.locked.push(inode);
        Ok(Box::new(FakeLock(self.clone(), inode)))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let mut state = self.lock();
        state.step()?;
        let inode = state.add(path, Inode::File { live: vec![], synced: vec![] })?;
        Ok(Box::new(FakeFile(self.clone(), inode)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let mut state = self.lock();
        state.step()?;
        Ok(Box::new(FakeFile(self.clone(), state.find(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        let inode = state.find(from)?;
        let (names, name) = state.place(from)?;
        names.remove(&name);
        let (names, name) = state.place(to)?;
        names.insert(name, inode);
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.lock().find(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.rename(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        let (first, second) = (state.find(one)?, state.find(other)?);
        for (path, inode) in [(one, second), (other, first)] {
            let (names, name) = state.place(path)?;
            names.insert(name, inode);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        let (names, name) = state.place(path)?;
        names.remove(&name).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        if !state.names(path)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (names, name) = state.place(path)?;
        names.remove(&name).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.step()?;
        let inode = state.find(path)?;
        if let Inode::Directory { live, durable } = &mut state.inodes[inode] {
            durable.clone_from(live);
        }
        Ok(())
    }
}

struct FakeFile(FakeDisk, usize);

impl FakeFile {
    fn with<T>(&self, step: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.0.lock();
        let trouble = state.step();
        match &mut state.inodes[self.1] {
            Inode::File { live, synced } => trouble.and_then(|()| step(live, synced)),
            Inode::Directory { .. } => Err(io::ErrorKind::IsADirectory.into()),
        }
    }
}

impl StorageFile for FakeFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        let trouble = state.step();
        if let Inode::File { live, .. } = &mut state.inodes[self.1] {
            // A write that fails has written a part.
            let whole = if trouble.is_ok() { bytes.len() } else { bytes.len() / 2 };
            live.extend_from_slice(&bytes[..whole]);
        }
        trouble
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.with(|live, _| {
            live.truncate(len as usize);
            Ok(())
        })
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(|live, _| {
            let from = offset as usize;
            let found = live.get(from..from + bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            bytes.copy_from_slice(found);
            Ok(())
        })
    }

    fn file_len(&self) -> io::Result<u64> {
        self.with(|live, _| Ok(live.len() as u64))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.with(|live, synced| {
            synced.clone_from(live);
            Ok(())
        })
    }
}

/// The path of the dataset on the fake disk.
pub fn target() -> PathBuf {
    PathBuf::from("set.grain")
}
