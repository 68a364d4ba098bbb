//! The files that requests read from: opened for direct I/O, for buffered I/O, or mapped.
//!
//! If the system refuses direct I/O or uncached reads, when the file is opened or in a later read, the file works
//! without it from then on and reports so: direct reads become buffered, and uncached reads leave their bytes in the
//! page cache.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::buffer::round_up;
use super::file_map::FileMap;
use super::read_at::{ReadAt, append_with, must_cache};
use super::{BLOCK_LEN, FileError, Span};

/// [`BLOCK_LEN`] as a file offset.
const BLOCK: u64 = BLOCK_LEN as u64;

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoMode {
    /// Direct I/O: past the page cache, in whole blocks.
    Direct,
    /// Through the page cache, exactly the wanted bytes.
    Buffered,
    /// Mapped into memory: the bytes are lent from the page cache, and nothing is copied. If the file is written to,
    /// bytes change after they were checked, so this is only for files that nobody changes. If it is truncated, or its
    /// device fails, the bytes that are lost are zeros; on systems other than Linux, the process ends with `SIGBUS`.
    Mapped,
}

impl IoMode {
    /// The mode's name, as users spell it.
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
            Self::Direct => round_up(wanted.end),
            Self::Buffered | Self::Mapped => buffered_len,
        };
        Span { mode: self, offset: offset - wanted_start as u64, len, wanted }
    }
}

/// An open file that requests read from.
pub struct OpenFile {
    path: Arc<Path>,
    reader: Box<dyn ReadAt>,
    file_len: u64,
    /// Present if the file is mapped.
    map: Option<FileMap>,
    requested: IoMode,
    direct: AtomicBool,
    device: OnceLock<Option<u64>>,
    dont_cache_requested: bool,
    dont_cache: AtomicBool,
}

impl OpenFile {
    /// Opens a file. If direct I/O is requested and the file system, or its alignment, does not
    /// allow it, the file is buffered and reports so by [`OpenFile::fell_back`].
    ///
    /// # Errors
    /// If the file cannot be opened, or cannot be mapped although that is requested.
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

    /// Wraps anything that reads bytes at an offset; `path` names it in errors. The length is
    /// determined once: nothing after it is read, since segments do not grow.
    ///
    /// # Errors
    /// If the length is not available, or the reader cannot be mapped although that is requested.
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
        // A map needs no file descriptor.
        let reader: Box<dyn ReadAt> = if map.is_some() { Box::new(Closed(file_len)) } else { Box::new(reader) };
        Ok(Self {
            path,
            reader,
            file_len,
            map,
            requested: mode,
            direct,
            dont_cache_requested: false,
            dont_cache: AtomicBool::new(false),
            device: OnceLock::new(),
        })
    }

    /// The same file with uncached reads: what buffered reads bring into the page cache is dropped after them.
    #[must_use]
    pub fn with_dont_cache(mut self) -> Self {
        self.dont_cache_requested = true;
        self.dont_cache = AtomicBool::new(true);
        if let Some(file) = self.reader.fd() {
            read_nothing_ahead(file);
        }
        self
    }

    /// The path that the file was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path, for errors.
    pub(super) fn shared_path(&self) -> Arc<Path> {
        Arc::clone(&self.path)
    }

    /// Length of the file in bytes when it was opened.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// How the file is currently read.
    #[must_use]
    pub fn mode(&self) -> IoMode {
        match self.map {
            Some(_) => IoMode::Mapped,
            None if self.direct.load(Ordering::Acquire) => IoMode::Direct,
            None => IoMode::Buffered,
        }
    }

    /// Whether direct I/O was requested and refused, at opening or by a later read.
    #[must_use]
    pub fn fell_back(&self) -> bool {
        self.requested != self.mode()
    }

    /// Whether reads leave nothing in the page cache: requested, and not refused so far.
    #[must_use]
    pub fn dont_cache(&self) -> bool {
        self.dont_cache.load(Ordering::Relaxed) && self.mode() == IoMode::Buffered
    }

    /// Whether uncached reads were requested, and the system has refused them.
    #[must_use]
    pub fn dont_cache_refused(&self) -> bool {
        self.dont_cache_requested && !self.dont_cache.load(Ordering::Relaxed)
    }

    /// Leaves what is read in the page cache from now on; for engines, after an uncached read was refused.
    pub fn give_up_dont_cache(&self) {
        self.dont_cache.store(false, Ordering::Relaxed);
    }

    /// Bytes of the mapped file; `None` if it is not mapped, or the range ends past the file. A page
    /// that cannot be read appears as zeros.
    #[must_use]
    pub fn mapped(&self, range: Range<u64>) -> Option<&[u8]> {
        self.map.as_ref()?.bytes().get(in_memory(&range)?)
    }

    /// Passes mapped bytes to `read`, which reads all of them at once: those that are not in memory are read together.
    /// `None` as of [`OpenFile::mapped`].
    pub fn read_mapped<T>(&self, range: &Range<u64>, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.map.as_ref()?.read(in_memory(range)?, read)
    }

    /// Asks the system to read mapped bytes ahead of their use, if they are long enough to be worth a call.
    pub(super) fn will_need(&self, range: &Range<u64>) {
        if let (Some(map), Some(range)) = (&self.map, in_memory(range)) {
            map.will_need(range);
        }
    }

    /// Bytes that the buffer of a request must hold: possibly more than `len` for a direct file, 0 for a mapped one.
    #[must_use]
    pub fn buffer_len(&self, offset: u64, len: usize) -> usize {
        self.mode().span(offset, len).len
    }

    /// The file descriptor, if there is one; for engines that pass it to the kernel themselves.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.fd()
    }

    /// The device that the file is on, determined once. `None` if there is no file descriptor.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only io_uring uses it"))]
    pub(super) fn device(&self) -> Option<u64> {
        *self.device.get_or_init(|| Some(rustix::fs::fstat(self.fd()?).ok()?.st_dev as u64))
    }

    /// One read, which may be short; for engines.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read_len = if self.dont_cache() {
            self.read_uncached_at(bytes, offset)?
        } else {
            self.reader.read_at(bytes, offset)?
        };
        Ok(read_len.min(bytes.len()))
    }

    /// A buffered read of what is in the page cache, which may be short; `None` if nothing is, or this is not
    /// supported.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_cached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        // What is never left in the page cache will not be there.
        if self.mode() != IoMode::Buffered || self.dont_cache() {
            return Ok(None);
        }
        let read_len = self.reader.read_cached_at(bytes, offset)?;
        Ok(read_len.map(|read_len| read_len.min(bytes.len())))
    }

    /// A buffered read, which may be short, into the spare capacity of `bytes`.
    pub(super) fn append_at(&self, bytes: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        if self.dont_cache() {
            append_with(bytes, |room| self.read_uncached_at(room, offset))
        } else {
            self.reader.append_at(bytes, offset)
        }
    }

    /// Whether the system refused a read because it was uncached. (Another read may already have switched that off.)
    pub(super) fn is_uncached_refusal(&self, error: &io::Error) -> bool {
        self.dont_cache_requested && self.mode() == IoMode::Buffered && must_cache(error)
    }

    fn read_uncached_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.reader.read_uncached_at(bytes, offset) {
            Err(error) if must_cache(&error) => {
                self.give_up_dont_cache();
                self.reader.read_at(bytes, offset)
            }
            result => result,
        }
    }

    /// Switches to buffered reads for good; for engines, after a direct read was refused.
    ///
    /// # Errors
    /// If the file cannot be switched.
    pub fn fall_back(&self) -> io::Result<()> {
        self.reader.leave_direct()?;
        self.direct.store(false, Ordering::Release);
        Ok(())
    }

    /// Where the file ends now, at most `read_len`, the end of what could be read.
    pub(super) fn end_seen_at(&self, read_len: u64) -> u64 {
        self.reader.file_len().map_or(read_len, |now| now.min(read_len))
    }

    pub(super) fn end_of_file(&self, range: Range<u64>, file_len: u64) -> FileError {
        FileError::EndOfFile { path: self.path.clone(), range, file_len }
    }
}

/// The reader of a file that was mapped and then closed: only its length is left.
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

/// A range of a file as one of memory.
fn in_memory(range: &Range<u64>) -> Option<Range<usize>> {
    Some(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

fn mapped(reader: &impl ReadAt, file_len: u64) -> io::Result<FileMap> {
    let file = reader.fd().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    FileMap::new(file, file_len)
}

/// Switches read-ahead off: what it reads would stay in the page cache.
#[cfg(target_os = "linux")]
fn read_nothing_ahead(file: BorrowedFd<'_>) {
    // Only a hint: without it more is left in the page cache than necessary.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random);
}

#[cfg(not(target_os = "linux"))]
fn read_nothing_ahead(_file: BorrowedFd<'_>) {}

/// Opens a file for direct I/O; `None` if that is refused.
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

/// Whether an alignment of 4096 bytes suffices for direct I/O on the file, as far as the kernel reports it (since 6.1).
/// It reports 0 if direct I/O is not possible.
#[cfg(target_os = "linux")]
fn blocks_suffice(file: &File) -> bool {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let Ok(stat) = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else { return true };
    let fits = |align: u32| align > 0 && BLOCK.is_multiple_of(align.into());
    let is_reported = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    !is_reported || (fits(stat.stx_dio_mem_align) && fits(stat.stx_dio_offset_align))
}

/// Whether the error means that direct I/O is not supported here.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error())
}
