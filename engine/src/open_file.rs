//! The files that requests read from: opened past the page cache, through it, or mapped.
//!
//! What the system refuses, when the file is opened or by a read since, the source does without for good, and says so:
//! direct reads become buffered, and buffered ones that leave nothing in the page cache leave it there.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::map::Map;
use super::read_at::{ReadAt, append_with, must_cache};
use super::{BLOCK_LEN, FileError, Span};

/// [`BLOCK_LEN`] as a file offset.
const BLOCK: u64 = BLOCK_LEN as u64;

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoMode {
    /// Past the page cache, in whole blocks.
    Direct,
    /// Through the page cache, exactly the wanted bytes.
    Buffered,
    /// Not at all: the bytes are lent where the page cache has them. A file that is cut while it is mapped ends the
    /// process by `SIGBUS`, and one that is written to changes bytes that were checked: only for files that nobody
    /// touches.
    Mapped,
}

impl IoMode {
    /// Its name, as [`IoChoice`](crate::IoChoice) has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
            Self::Mapped => "mapped",
        }
    }

    pub(super) fn span(self, offset: u64, len: usize) -> Span {
        let wanted_start = match self {
            Self::Direct if len > 0 => (offset % BLOCK) as usize,
            _ => 0,
        };
        let buffered_len = if self == Self::Mapped { 0 } else { len };
        let wanted = wanted_start..wanted_start.saturating_add(buffered_len);
        let len = match self {
            Self::Direct => wanted.end.checked_next_multiple_of(BLOCK_LEN).unwrap_or(usize::MAX),
            Self::Buffered | Self::Mapped => buffered_len,
        };
        Span { mode: self, offset: offset - wanted_start as u64, len, wanted }
    }
}

/// An opened file that requests read from.
pub struct OpenFile {
    path: Arc<Path>,
    reader: Box<dyn ReadAt>,
    file_len: u64,
    /// Where it is mapped.
    map: Option<Map>,
    asked: IoMode,
    direct: AtomicBool,
    device: OnceLock<Option<u64>>,
    dont_cache_asked: bool,
    dont_cache: AtomicBool,
}

impl OpenFile {
    /// Opens a file. Where direct I/O is asked for and the file system, or its alignment, does not
    /// allow it, the source is buffered and says so by [`OpenFile::fell_back`].
    ///
    /// # Errors
    /// Where the file cannot be opened, or not be mapped if that is asked for.
    pub fn open(path: impl AsRef<Path>, mode: IoMode) -> Result<Self, FileError> {
        let path = path.as_ref();
        let direct = match mode {
            IoMode::Direct => open_direct(path),
            IoMode::Buffered | IoMode::Mapped => Ok(None),
        };
        let (file, now) = match direct {
            Ok(Some(file)) => (Ok(file), IoMode::Direct),
            Ok(None) => (File::open(path), IoMode::Buffered),
            Err(source) => (Err(source), mode),
        };
        let file = file.map_err(|source| FileError::Open { path: path.into(), source })?;
        let opened = Self::from_reader(path, file, mode)?;
        opened.direct.store(now == IoMode::Direct, Ordering::Release);
        Ok(opened)
    }

    /// Makes a source of anything that reads bytes at an offset; `path` names it in errors. The
    /// length is asked once: nothing behind it is read, since segments do not grow.
    ///
    /// # Errors
    /// Where the reader does not tell its length, or is to be mapped and cannot be.
    pub fn from_reader(path: impl AsRef<Path>, reader: impl ReadAt + 'static, mode: IoMode) -> Result<Self, FileError> {
        let path: Arc<Path> = path.as_ref().into();
        let file_len = match reader.file_len() {
            Ok(file_len) => file_len,
            Err(source) => return Err(FileError::Open { path, source }),
        };
        let map = match mode {
            IoMode::Mapped => {
                Some(mapped(&reader, file_len).map_err(|source| FileError::Map { path: path.clone(), source })?)
            }
            IoMode::Direct | IoMode::Buffered => None,
        };
        let direct = AtomicBool::new(mode == IoMode::Direct);
        // A map needs no descriptor.
        let reader: Box<dyn ReadAt> = if map.is_some() { Box::new(Closed(file_len)) } else { Box::new(reader) };
        Ok(Self {
            path,
            reader,
            file_len,
            map,
            asked: mode,
            direct,
            dont_cache_asked: false,
            dont_cache: AtomicBool::new(false),
            device: OnceLock::new(),
        })
    }

    /// The same file; what buffered reads bring into the page cache goes when they are done.
    #[must_use]
    pub fn with_dont_cache(mut self) -> Self {
        self.dont_cache_asked = true;
        self.dont_cache = AtomicBool::new(true);
        if let Some(file) = self.reader.fd() {
            read_nothing_ahead(file);
        }
        self
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path, for errors.
    pub(super) fn shared_path(&self) -> Arc<Path> {
        Arc::clone(&self.path)
    }

    /// Bytes of the file when it was opened.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// How it is read now.
    #[must_use]
    pub fn mode(&self) -> IoMode {
        match self.map {
            Some(_) => IoMode::Mapped,
            None if self.direct.load(Ordering::Acquire) => IoMode::Direct,
            None => IoMode::Buffered,
        }
    }

    /// Whether direct I/O was asked for and refused, at opening or by a read since.
    #[must_use]
    pub fn fell_back(&self) -> bool {
        self.asked != self.mode()
    }

    /// Whether reads are to leave nothing in the page cache, and by now nothing says that they cannot.
    #[must_use]
    pub fn dont_cache(&self) -> bool {
        self.dont_cache.load(Ordering::Relaxed) && self.mode() == IoMode::Buffered
    }

    /// Whether reads were to leave nothing in the page cache, and one since was refused that.
    #[must_use]
    pub fn caches_after_all(&self) -> bool {
        self.dont_cache_asked && !self.dont_cache.load(Ordering::Relaxed)
    }

    /// Lets what is read stay in the page cache for good; for engines, when a read that was not to was refused.
    pub fn give_up_dont_cache(&self) {
        self.dont_cache.store(false, Ordering::Relaxed);
    }

    /// Bytes of the file in memory; `None` where it is not mapped, or they end past the file.
    #[must_use]
    pub fn mapped(&self, range: Range<u64>) -> Option<&[u8]> {
        let place = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        self.map.as_ref()?.bytes().get(place)
    }

    /// Lets the system read mapped bytes ahead of their use, where they are worth a call.
    pub(super) fn announce(&self, range: Range<u64>) {
        if let (Some(map), Ok(start), Ok(end)) = (&self.map, range.start.try_into(), range.end.try_into()) {
            map.announce(start..end);
        }
    }

    /// Bytes that the buffer of a request has to hold: more than `len` for a direct source, none for a mapped one.
    #[must_use]
    pub fn buffer_len(&self, offset: u64, len: usize) -> usize {
        self.mode().span(offset, len).len
    }

    /// The open file, where there is one; for engines that hand it to the kernel themselves.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.fd()
    }

    /// The device that the open file lies on, asked once. `None` where there is no file.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "io_uring alone asks"))]
    pub(super) fn device(&self) -> Option<u64> {
        *self.device.get_or_init(|| Some(rustix::fs::fstat(self.fd()?).ok()?.st_dev as u64))
    }

    /// One read, which may be short; for engines.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read_len = match self.dont_cache() {
            true => self.read_uncached_at(bytes, offset)?,
            false => self.reader.read_at(bytes, offset)?,
        };
        Ok(read_len.min(bytes.len()))
    }

    /// A buffered read of what is in the page cache, which may be short; `None` where nothing is, or nobody knows.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_cached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        // What is not to be left behind will not be there.
        if self.mode() != IoMode::Buffered || self.dont_cache() {
            return Ok(None);
        }
        let read_len = self.reader.read_cached_at(bytes, offset)?;
        Ok(read_len.map(|read_len| read_len.min(bytes.len())))
    }

    /// A buffered read, which may be short, into the room that `bytes` has.
    pub(super) fn append_at(&self, bytes: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        match self.dont_cache() {
            true => append_with(bytes, |room| self.read_uncached_at(room, offset)),
            false => self.reader.append_at(bytes, offset),
        }
    }

    /// Whether the system refused a read because it was to leave nothing in the page cache; another read may have been
    /// refused so meanwhile.
    pub(super) fn is_uncached_refusal(&self, error: &io::Error) -> bool {
        self.dont_cache_asked && self.mode() == IoMode::Buffered && must_cache(error)
    }

    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.reader.read_uncached_at(bytes, offset) {
            Err(error) if must_cache(&error) => {
                self.give_up_dont_cache();
                self.reader.read_at(bytes, offset)
            }
            answer => answer,
        }
    }

    /// Turns to buffered reads for good; for engines, when a direct read was refused.
    ///
    /// # Errors
    /// Where the file cannot be switched over.
    pub fn fall_back(&self) -> io::Result<()> {
        self.reader.leave_direct()?;
        self.direct.store(false, Ordering::Release);
        Ok(())
    }

    /// The file's length as it is now, and `read_len` where no more than that could be read.
    pub(super) fn end_seen_at(&self, read_len: u64) -> u64 {
        self.reader.file_len().map_or(read_len, |now| now.min(read_len))
    }

    pub(super) fn end_of_file(&self, range: Range<u64>, file_len: u64) -> FileError {
        FileError::EndOfFile { path: self.path.clone(), range, file_len }
    }
}

/// A file that was mapped and closed, of so many bytes.
struct Closed(u64);

impl ReadAt for Closed {
    fn read_at(&self, _bytes: &mut [u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn file_len(&self) -> io::Result<u64> {
        Ok(self.0)
    }
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile").field("path", &self.path).field("mode", &self.mode()).finish_non_exhaustive()
    }
}

fn mapped(reader: &impl ReadAt, file_len: u64) -> io::Result<Map> {
    let file = reader.fd().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    Map::new(file, file_len)
}

/// Else what was read ahead would stay.
#[cfg(target_os = "linux")]
fn read_nothing_ahead(file: BorrowedFd<'_>) {
    // Only advice: without it more is left behind than has to be.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random);
}

#[cfg(not(target_os = "linux"))]
fn read_nothing_ahead(_file: BorrowedFd<'_>) {}

/// `None` where direct I/O is refused.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(blocks_suffice(&file).then_some(file)),
        Err(error) if is_refusal(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Whether 4096 bytes are alignment enough for the file, as far as the kernel says (since 6.1): it
/// says 0 where direct I/O is not possible at all.
#[cfg(target_os = "linux")]
fn blocks_suffice(file: &File) -> bool {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let Ok(stat) = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else { return true };
    let fits = |align: u32| align > 0 && BLOCK.is_multiple_of(align.into());
    let told = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    !told || (fits(stat.stx_dio_mem_align) && fits(stat.stx_dio_offset_align))
}

/// Whether the system says that a direct read or open is not to be had here.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error())
}
