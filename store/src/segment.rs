//! The segments' files. They are opened here only to check that they are the right ones.
//! spec.md: EXT-1 to EXT-3.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use grainstore_format::{
    Fingerprint, PathReach, SegmentKind, SegmentRef, data_fingerprint_of, external_path_reach, modified_ns,
};

use crate::StoreError;
use crate::index::file::open_regular;
use crate::opened_segment::{FileId, OpenedFile, fingerprint_of};

/// Where the files of external segments may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedPaths {
    /// In the parent directory of the dataset, or below it.
    Parent,
    /// Anywhere: the caller allows it.
    Anywhere,
}

/// What the manifest records of an external segment's data file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExternalData {
    fingerprint: Fingerprint,
    modified_ns: i64,
    allowed: AllowedPaths,
}

/// Whether a data file with the right content has the modification time of the manifest. spec.md: EXT-3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileTime {
    /// It has, or the manifest records none.
    Same,
    /// It has another one: the checksums decide.
    Other,
}

/// A segment of an opened dataset.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    data: Option<ExternalData>,
    file_len: u64,
    /// That of its index.
    fingerprint: Fingerprint,
    ordinals: Range<u64>,
    checked: OnceLock<FileTime>,
    /// A file that is known to be this segment.
    identified: OnceLock<FileId>,
}

impl AllowedPaths {
    pub(crate) fn new(allow_external: bool) -> Self {
        if allow_external { Self::Anywhere } else { Self::Parent }
    }

    /// Refuses a path outside the allowed directory; no file is accessed. spec.md: EXT-4.
    pub(crate) fn check(self, directory: &Path, segment: &SegmentRef) -> Result<(), StoreError> {
        if self == Self::Anywhere || segment.kind == SegmentKind::Native {
            return Ok(());
        }
        match external_path_reach(&segment.path).map_err(|error| StoreError::format(directory, error))? {
            PathReach::Inside => Ok(()),
            PathReach::Outside => {
                let target = directory.join(&segment.path);
                Err(StoreError::Outside { path: directory.to_owned(), target })
            }
        }
    }

    /// Refuses links that lead outside the allowed directory. spec.md: EXT-4.
    pub(crate) fn check_links(self, directory: &Path, path: &Path) -> Result<(), StoreError> {
        if self == Self::Anywhere {
            return Ok(());
        }
        let real = |path: &Path| std::fs::canonicalize(path).map_err(|error| StoreError::io(path, error));
        let target = real(path)?;
        let home = real(directory)?;
        if target.starts_with(home.parent().unwrap_or(&home)) {
            return Ok(());
        }
        Err(StoreError::Outside { path: path.to_owned(), target })
    }
}

impl ExternalData {
    /// The data of an external segment; `None` for a native one.
    pub(crate) fn of(kind: &SegmentKind, allowed: AllowedPaths) -> Option<Self> {
        match kind {
            SegmentKind::Native => None,
            &SegmentKind::External { data_fingerprint: fingerprint, modified_ns, .. } => {
                Some(Self { fingerprint, modified_ns, allowed })
            }
        }
    }
}

impl Segment {
    pub(crate) fn new(
        path: PathBuf,
        data: Option<ExternalData>,
        file_len: u64,
        fingerprint: Fingerprint,
        ordinals: Range<u64>,
    ) -> Self {
        let (checked, identified) = (OnceLock::new(), OnceLock::new());
        Self { path, data, file_len, fingerprint, ordinals, checked, identified }
    }

    /// The file with the samples.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the segment is external: another program's file, with an index in a file of its own.
    pub fn is_external(&self) -> bool {
        self.data.is_some()
    }

    /// The length of the file in bytes, as recorded in the dataset.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The ordinals of its samples.
    pub fn ordinals(&self) -> Range<u64> {
        self.ordinals.clone()
    }

    /// Compares the file's length, and the fingerprint of an external one, with the dataset. Done once.
    pub(crate) fn check_file(&self, directory: &Path) -> Result<FileTime, StoreError> {
        if let Some(&time) = self.checked.get() {
            return Ok(time);
        }
        let time = check_data_file(directory, &self.path, self.file_len, self.data.as_ref())?;
        Ok(*self.checked.get_or_init(|| time))
    }

    /// Checks that an open file has the segment's length, and a native one its fingerprint. A file that was found right
    /// before is known again without a read.
    ///
    /// The outer error is that of `read`.
    pub(crate) fn check_opened<E>(
        &self,
        file: OpenedFile<'_>,
        read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
    ) -> Result<Result<(), StoreError>, E> {
        let has_len = check_len(&self.path, file.len, self.file_len);
        let id = FileId::of(&file);
        if has_len.is_err() || self.is_external() || id.is_some() && id.as_ref() == self.identified.get() {
            return Ok(has_len);
        }
        Ok(fingerprint_of(&self.path, file.len, read)?.and_then(|found| self.identify(found, id)))
    }

    fn identify(&self, found: Fingerprint, id: Option<FileId>) -> Result<(), StoreError> {
        if found != self.fingerprint {
            let what = format!("its fingerprint is {found}, that of the dataset's segment is {}", self.fingerprint);
            return Err(StoreError::mismatch(&self.path, what));
        }
        if let Some(id) = id {
            self.identified.get_or_init(|| id);
        }
        Ok(())
    }
}

/// Compares a data file with the manifest.
pub(crate) fn check_data_file(
    directory: &Path,
    path: &Path,
    file_len: u64,
    data: Option<&ExternalData>,
) -> Result<FileTime, StoreError> {
    if let Some(data) = data {
        data.allowed.check_links(directory, path)?;
    }
    let (file, found_len) = open_regular(path)?;
    check_len(path, found_len, file_len)?;
    match data {
        Some(data) => data.check(path, &file, file_len),
        None => Ok(FileTime::Same),
    }
}

fn check_len(path: &Path, found: u64, expected: u64) -> Result<(), StoreError> {
    if found == expected {
        return Ok(());
    }
    Err(StoreError::mismatch(path, format!("it has {found} bytes, the manifest has {expected}")))
}

impl ExternalData {
    fn check(&self, path: &Path, file: &File, file_len: u64) -> Result<FileTime, StoreError> {
        let wrong = |error| StoreError::io(path, error);
        let found = data_fingerprint_of(file_len, |bytes, offset| file.read_exact_at(bytes, offset)).map_err(wrong)?;
        if found != self.fingerprint {
            let expected = self.fingerprint;
            let what = format!("the data has changed: its fingerprint is {found}, the manifest has {expected}");
            return Err(StoreError::mismatch(path, what));
        }
        let time = file.metadata().and_then(|metadata| metadata.modified()).map_err(wrong)?;
        Ok(if modified_ns(time) == self.modified_ns { FileTime::Same } else { FileTime::Other })
    }
}

/// The notice about files of which only the modification time has changed; the first is named.
pub(crate) fn modified_since(first: &str, others: usize) -> String {
    let others = match others {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    format!(
        "{first}{others}: modified since the dataset was made, though its length and fingerprint are the same; \
         the samples' checksums decide"
    )
}
