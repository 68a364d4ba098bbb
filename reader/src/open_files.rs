//! The open files of a dataset's segments, shared by everything that reads from them.
//!
//! A file is opened when it is first needed, and the file that is then read from is compared with the segment that the
//! dataset was opened with. At most [`open_max`] stay open. If the dataset has no more segments than that, each has a
//! slot and is found without a lock; otherwise the file opened first is dropped, and closes when the last request to it
//! is done. As many again may be open of mapped files that are read with system calls, too, and of those that were read
//! through the page cache before they were mapped ([`ReaderAccess`](crate::access::ReaderAccess)).

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use grainstore_format::{shown_path, to_usize};
use grainstore_store::{Collection, Location, OpenedFile, StoreError};
use rustix::process::{Resource, getrlimit};

use crate::ReadError;
use crate::batch_builder::IN_PLACE_LEN_MIN;
use crate::engine::{Buffer, FileError, IoMode, OpenFile, ReadRequest, append_now, read_now};
use grainstore_host::{ForkLock, open_regular};

/// A quarter of the usual limit of 1024 descriptors; requests in flight may hold as many again.
const OPEN_MAX: usize = 256;

/// How files are opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) mode: IoMode,
    /// Whether buffered reads leave nothing in the page cache.
    pub(crate) dont_cache: bool,
    /// Whether it is an error if a file cannot be mapped. If not, such a file is read through the page cache.
    pub(crate) must_map: bool,
}

/// Opens the files of segments and keeps them open.
pub(crate) struct OpenFiles {
    dataset: Collection,
    opening: Opening,
    open: Open,
    /// Mapped files that are read with system calls, too, for bytes that are used before they are checked.
    unmapped: Open,
    open_max: usize,
    /// The first file that direct I/O was refused for.
    refused: OnceLock<PathBuf>,
    /// The first file whose reads stay in the page cache although `dont_cache` is set.
    caching: OnceLock<PathBuf>,
}

/// Files that are open.
enum Open {
    /// Few segments: a slot for each.
    Each(Vec<OnceLock<Arc<OpenFile>>>),
    /// Many segments: those opened last.
    Latest(ForkLock<Latest>),
}

#[derive(Default)]
struct Latest {
    by_segment: HashMap<usize, Arc<OpenFile>>,
    oldest_first: VecDeque<usize>,
}

impl OpenFiles {
    pub(crate) fn new(dataset: Collection, opening: Opening) -> Self {
        let open_max = open_max();
        let new = || Open::new(dataset.segment_count(), open_max);
        let (open, unmapped) = (new(), new());
        Self { dataset, opening, open, unmapped, open_max, refused: OnceLock::new(), caching: OnceLock::new() }
    }

    /// The open file of a segment, for a request to own.
    pub(crate) fn of(&self, segment: usize) -> Result<Arc<OpenFile>, ReadError> {
        self.borrowed(segment).map(Cow::into_owned)
    }

    /// The open file of a segment, borrowed: usually without changing a reference count, which threads would contend
    /// for.
    pub(crate) fn borrowed(&self, segment: usize) -> Result<Cow<'_, Arc<OpenFile>>, ReadError> {
        self.found_or_opened(&self.open, segment, self.opening.mode)
    }

    fn found_or_opened<'a>(
        &self,
        open: &'a Open,
        segment: usize,
        mode: IoMode,
    ) -> Result<Cow<'a, Arc<OpenFile>>, ReadError> {
        if let Some(file) = open.find(segment) {
            return Ok(file);
        }
        // Without a lock, so that a slow file system does not block others. Two may open the same file; one is dropped.
        let file = self.open_as(segment, mode)?;
        let dropped = open.put(segment, &file, self.open_max);
        for file in dropped.iter().chain([&file]) {
            self.note(file);
        }
        Ok(open.find(segment).unwrap_or(Cow::Owned(file)))
    }

    /// Opens the files that stay open, and compares each with the dataset.
    pub(crate) fn open_ahead(&self) -> Result<(), ReadError> {
        (0..self.dataset.segment_count().min(self.open_max)).try_for_each(|segment| self.borrowed(segment).map(drop))
    }

    /// The open file of a segment, if it is open.
    pub(crate) fn if_open(&self, segment: usize) -> Option<Cow<'_, Arc<OpenFile>>> {
        self.open.find(segment)
    }

    /// How files are read: buffered once direct I/O was refused for one of them.
    pub(crate) fn mode(&self) -> IoMode {
        if self.refused().is_some() { IoMode::Buffered } else { self.opening.mode }
    }

    /// The most requests that one call or epoch may have in flight, so that their files do not exhaust the descriptors.
    pub(crate) fn requests_max(&self) -> usize {
        if self.dataset.segment_count() <= self.open_max { usize::MAX } else { self.open_max }
    }

    /// Raw samples from this many bytes on may be read straight into their batch.
    pub(crate) fn in_place_len_min(&self) -> u64 {
        match self.opening.mode {
            IoMode::Direct | IoMode::Buffered => IN_PLACE_LEN_MIN,
            // Mapped bytes are not read into a buffer.
            IoMode::Mapped => u64::MAX,
        }
    }

    /// The open file of a segment for bytes that are used before all of them are checked: mapped ones could be zeros in
    /// place of a page that cannot be read, so such a file is opened once more, for all that ask.
    pub(crate) fn unmapped(&self, segment: usize) -> Result<Arc<OpenFile>, ReadError> {
        match self.opening.mode {
            IoMode::Direct | IoMode::Buffered => self.of(segment),
            IoMode::Mapped => self.found_or_opened(&self.unmapped, segment, IoMode::Buffered).map(Cow::into_owned),
        }
    }

    /// The stored bytes of a sample, read with a system call; `None` if its file is not mapped. For mapped bytes whose
    /// checksum is wrong: they may be zeros in place of a page that cannot be read.
    pub(crate) fn reread(&self, location: &Location) -> Option<Result<Vec<u8>, FileError>> {
        if self.opening.mode != IoMode::Mapped {
            return None;
        }
        let mut stored = Vec::new();
        let range = location.offset..location.offset.saturating_add(location.stored_len);
        // Not compared with the dataset: the sample's checksum is, and the error is about these bytes.
        let path = self.dataset.segment_path(location.segment);
        // The path may lead to a pipe meanwhile, which must not be waited for.
        let file = match open_regular(path) {
            Ok((file, _)) => OpenFile::from_reader(path, file, IoMode::Buffered),
            Err(source) => Err(FileError::Open { path: path.into(), source }),
        };
        Some(file.and_then(|file| append_now(&file, range, &mut stored)).map(|()| stored))
    }

    /// A file for which direct I/O was requested and refused, at opening or by a later read.
    pub(crate) fn refused(&self) -> Option<&Path> {
        self.each(|file| self.note(file));
        self.refused.get().map(PathBuf::as_path)
    }

    /// A file whose reads stay in the page cache although `dont_cache` is set.
    pub(crate) fn caching(&self) -> Option<&Path> {
        self.each(|file| self.note(file));
        self.caching.get().map(PathBuf::as_path)
    }

    fn each(&self, mut look: impl FnMut(&OpenFile)) {
        self.open.each(&mut look);
        self.unmapped.each(&mut look);
    }

    fn open_as(&self, segment: usize, mode: IoMode) -> Result<Arc<OpenFile>, ReadError> {
        self.dataset.segment_file(segment)?;
        let path = self.dataset.segment_path(segment);
        let file = match OpenFile::open(path, mode) {
            Err(FileError::Map { .. }) if !self.opening.must_map => OpenFile::open(path, IoMode::Buffered),
            opened => opened,
        };
        let file = file.map_err(|source| self.cannot_open(segment, source))?;
        let file = Arc::new(if self.opening.dont_cache { file.with_dont_cache() } else { file });
        // The path may lead to another file than the one before. This one is read from.
        let opened = OpenedFile { len: file.file_len(), fd: file.fd() };
        self.dataset.check_opened_segment(segment, opened, |bytes, offset| read_exact(&file, bytes, offset))?;
        Ok(file)
    }

    /// A file that was there when it was checked may be gone.
    fn cannot_open(&self, segment: usize, source: FileError) -> ReadError {
        match (&source, self.dataset.missing_segment_file(segment)) {
            (FileError::Open { source: cause, .. }, changed @ StoreError::Changed { .. })
                if cause.kind() == std::io::ErrorKind::NotFound =>
            {
                changed.into()
            }
            _ => ReadError::CannotOpen { source },
        }
    }

    fn note(&self, file: &OpenFile) {
        if file.fell_back() {
            self.refused.get_or_init(|| {
                let shown = shown_path(file.path());
                tracing::warn!("{shown}: the file system refuses direct I/O; reading through the page cache instead");
                file.path().to_owned()
            });
        }
        if file.dont_cache_refused() {
            self.caching.get_or_init(|| {
                let shown = shown_path(file.path());
                tracing::info!("{shown}: the system cannot read without caching here");
                file.path().to_owned()
            });
        }
    }
}

/// Fills `bytes` from an offset of the file, as its samples are read: directly, through the page cache, or from the map.
fn read_exact(file: &Arc<OpenFile>, bytes: &mut [u8], offset: u64) -> Result<(), ReadError> {
    let buffer_len = file.buffer_len(offset, bytes.len());
    let buffer = Buffer::try_with_capacity(buffer_len).ok_or(ReadError::NoMemory { len: buffer_len as u64 })?;
    let request = ReadRequest { file: Arc::clone(file), offset, len: bytes.len(), buffer, token: 0 };
    let filled = read_now(request).result.map_err(|failed| ReadError::CannotOpen { source: failed.error })?;
    bytes.copy_from_slice(filled.bytes());
    Ok(())
}

/// The most files that are kept open: fewer if the process may not open many.
fn open_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(OPEN_MAX, |limit| to_usize(limit / 4).clamp(1, OPEN_MAX))
}

impl Open {
    fn new(segment_count: usize, open_max: usize) -> Self {
        if segment_count <= open_max {
            Self::Each((0..segment_count).map(|_| OnceLock::new()).collect())
        } else {
            Self::Latest(ForkLock::default())
        }
    }

    fn find(&self, segment: usize) -> Option<Cow<'_, Arc<OpenFile>>> {
        match self {
            Self::Each(slots) => slots.get(segment)?.get().map(Cow::Borrowed),
            Self::Latest(latest) => latest.lock()?.by_segment.get(&segment).cloned().map(Cow::Owned),
        }
    }

    /// Returns the file that was dropped to make room.
    fn put(&self, segment: usize, file: &Arc<OpenFile>, open_max: usize) -> Option<Arc<OpenFile>> {
        match self {
            Self::Each(slots) => {
                slots.get(segment)?.get_or_init(|| Arc::clone(file));
                None
            }
            Self::Latest(latest) => latest.lock()?.put(segment, file, open_max),
        }
    }

    fn each(&self, mut look: impl FnMut(&OpenFile)) {
        match self {
            Self::Each(slots) => slots.iter().filter_map(OnceLock::get).for_each(|file| look(file)),
            Self::Latest(latest) => {
                let latest = latest.lock();
                latest.iter().flat_map(|latest| latest.by_segment.values()).for_each(|file| look(file));
            }
        }
    }
}

impl Latest {
    /// Returns the file that was dropped to make room.
    fn put(&mut self, segment: usize, file: &Arc<OpenFile>, open_max: usize) -> Option<Arc<OpenFile>> {
        if self.by_segment.insert(segment, Arc::clone(file)).is_none() {
            self.oldest_first.push_back(segment);
        }
        if self.by_segment.len() <= open_max {
            return None;
        }
        self.oldest_first.pop_front().and_then(|oldest| self.by_segment.remove(&oldest))
    }
}
