//! The files that hold the samples. They are not opened here but once, to see that they are the right ones.
//! spec.md: EXT-1, EXT-2.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use grainstore_format::{Fingerprint, data_fingerprint, to_usize};

use crate::StoreError;
use crate::file::open_regular;

/// Bytes at the start and at the end of a data file that its fingerprint covers. spec.md: EXT-2.
const FINGERPRINTED_LEN: u64 = 65536;

/// A segment of an opened dataset.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    data_fingerprint: Option<Fingerprint>,
    file_len: u64,
    ordinals: Range<u64>,
    checked: OnceLock<()>,
}

impl Segment {
    pub(crate) fn new(
        path: PathBuf,
        data_fingerprint: Option<Fingerprint>,
        file_len: u64,
        ordinals: Range<u64>,
    ) -> Self {
        Self { path, data_fingerprint, file_len, ordinals, checked: OnceLock::new() }
    }

    /// The file with the samples.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is somebody else's, with an index of ours.
    pub fn is_external(&self) -> bool {
        self.data_fingerprint.is_some()
    }

    /// The length of the file in bytes, as the dataset knows it.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The ordinals of its samples.
    pub fn ordinals(&self) -> Range<u64> {
        self.ordinals.clone()
    }

    /// Compares the file's length, and of an external one the fingerprint; once, then it is remembered.
    pub(crate) fn check_file(&self, directory: &Path) -> Result<(), StoreError> {
        if self.checked.get().is_none() {
            check_data_file(directory, &self.path, self.file_len, self.data_fingerprint)?;
            self.checked.get_or_init(|| ());
        }
        Ok(())
    }
}

/// Compares a data file with what the manifest says of it.
pub(crate) fn check_data_file(
    directory: &Path,
    path: &Path,
    file_len: u64,
    expected: Option<Fingerprint>,
) -> Result<File, StoreError> {
    if expected.is_some() {
        check_stays_inside(path, directory)?;
    }
    let (file, found_len) = open_regular(path)?;
    if found_len != file_len {
        return Err(StoreError::mismatch(path, format!("it has {found_len} bytes, the manifest says {file_len}")));
    }
    if let Some(expected) = expected {
        let found = fingerprint_of(&file, file_len).map_err(|error| StoreError::io(path, error))?;
        if found != expected {
            let what = format!("the data has changed: its fingerprint is {found}, the manifest says {expected}");
            return Err(StoreError::mismatch(path, what));
        }
    }
    Ok(file)
}

/// Links may not lead an external segment out of the directory that the dataset lies in. spec.md: EXT-1.
fn check_stays_inside(path: &Path, directory: &Path) -> Result<(), StoreError> {
    let real = |path: &Path| std::fs::canonicalize(path).map_err(|error| StoreError::io(path, error));
    let (found, home) = (real(path)?, real(directory)?);
    let parent = home.parent().unwrap_or(&home);
    if found.starts_with(parent) {
        return Ok(());
    }
    Err(StoreError::mismatch(path, format!("it leads to {}, out of {}", found.display(), parent.display())))
}

fn fingerprint_of(file: &File, file_len: u64) -> io::Result<Fingerprint> {
    let len = file_len.min(FINGERPRINTED_LEN);
    let (mut head, mut tail) = (vec![0; to_usize(len)], vec![0; to_usize(len)]);
    file.read_exact_at(&mut head, 0)?;
    file.read_exact_at(&mut tail, file_len - len)?;
    Ok(data_fingerprint(&head, &tail, file_len))
}
