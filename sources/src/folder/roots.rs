//! The folders of a source and the keys of their files.
//!
//! With one folder, a key is the path below it. With several, the key begins with the folder's name, so `train/a.jpg`
//! and `val/a.jpg` are two samples. Folders are read in the given order. A table of labels is sorted by key: there too
//! the files of a folder are neighbours, since no name with its slash is a prefix of another one.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grainstore_format::{MAX_KEY_LEN, shown_path};

use super::listing::Listing;
use crate::ListingError;
use crate::SourceError;

/// Listed folders, in the order given; at least one.
#[derive(Debug)]
pub(super) struct Roots {
    listings: Vec<Listing>,
    /// The prefix of each folder's keys; empty where there is one folder.
    prefixes: Vec<Vec<u8>>,
    /// For each folder, the index of its first file among all files in the order of keys.
    first_ranks: Vec<usize>,
}

impl Roots {
    /// # Errors
    /// Where two folders have the same name or one is inside the other, a folder has no name, or a key would be too
    /// long.
    pub(super) fn of(listings: Vec<Listing>) -> Result<Self, SourceError> {
        let prefixes = match &listings[..] {
            [_] => vec![Vec::new()],
            several => distinct_prefixes(several)?,
        };
        let first_ranks = first_ranks(&listings, &prefixes);
        let roots = Self { listings, prefixes, first_ranks };
        roots.check_keys()?;
        Ok(roots)
    }

    pub(super) fn listings(&self) -> &[Listing] {
        &self.listings
    }

    /// The names of the folders, where there are several.
    pub(super) fn names(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let several = self.listings.len() > 1;
        several.then(|| self.prefixes.iter().map(|prefix| prefix.strip_suffix(b"/").unwrap_or(prefix)))
    }

    pub(super) fn key(&self, root: usize, file: usize) -> Vec<u8> {
        [&self.prefixes[root], self.listings[root].relative_path(file)].concat()
    }

    /// The index of a file among all files in the order of keys.
    pub(super) fn rank(&self, root: usize, file: usize) -> usize {
        self.first_ranks[root] + file
    }

    /// All keys, sorted.
    pub(super) fn sorted_keys(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut roots: Vec<usize> = (0..self.listings.len()).collect();
        roots.sort_unstable_by_key(|&root| self.first_ranks[root]);
        roots.into_iter().flat_map(move |root| (0..self.listings[root].len()).map(move |file| self.key(root, file)))
    }

    fn check_keys(&self) -> Result<(), SourceError> {
        for (listing, prefix) in self.listings.iter().zip(&self.prefixes) {
            let len = |file: usize| prefix.len() + listing.relative_path(file).len();
            if let Some(file) = (0..listing.len()).find(|&file| len(file) > MAX_KEY_LEN) {
                return Err(SourceError::KeyTooLong { path: listing.path(file), len: len(file) });
            }
        }
        Ok(())
    }
}

/// Removes a file that is not a sample from the listing of its folder, where it is listed.
pub(super) fn remove_from(listing: &mut Listing, path: &Path) -> Result<(), ListingError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // The last component is not followed: what is listed is the link under its own name.
    let (Ok(folder), Ok(root)) = (fs::canonicalize(folder), fs::canonicalize(listing.root())) else { return Ok(()) };
    match folder.join(name).strip_prefix(root) {
        Ok(relative) => listing.remove_all([relative.as_os_str().as_bytes()].into_iter()),
        Err(_) => Ok(()),
    }
}

fn distinct_prefixes(listings: &[Listing]) -> Result<Vec<Vec<u8>>, SourceError> {
    let paths: Vec<PathBuf> = listings.iter().map(|listing| canonical(listing.root())).collect::<Result<_, _>>()?;
    let mut prefixes: Vec<Vec<u8>> = Vec::new();
    for (number, (listing, path)) in listings.iter().zip(&paths).enumerate() {
        let refused = |why: String| Err(SourceError::Refused { path: listing.root().to_owned(), why: why.into() });
        let Some(name) = listing.root().file_name().or(path.file_name()) else {
            return refused("it has no name, which keys would begin with".into());
        };
        let prefix = [name.as_bytes(), b"/"].concat();
        if let Some(other) = prefixes.iter().position(|other| *other == prefix) {
            let other = shown_path(listings[other].root());
            return refused(format!("has the same name as {other}; keys begin with the folder's name, so rename one"));
        }
        let nested = |other: &usize| paths[*other].starts_with(path) || path.starts_with(&paths[*other]);
        if let Some(other) = (0..number).find(nested) {
            let other = shown_path(listings[other].root());
            return refused(format!("one of it and {other} is inside the other: its files would be packed twice"));
        }
        prefixes.push(prefix);
    }
    Ok(prefixes)
}

fn canonical(path: &Path) -> Result<PathBuf, SourceError> {
    fs::canonicalize(path).map_err(|source| SourceError::Path { path: path.to_owned(), source })
}

fn first_ranks(listings: &[Listing], prefixes: &[Vec<u8>]) -> Vec<usize> {
    let count_before = |prefix: &Vec<u8>| {
        let before = prefixes.iter().zip(listings).filter(|(other, _)| *other < prefix);
        before.map(|(_, listing)| listing.len()).sum()
    };
    prefixes.iter().map(count_before).collect()
}
