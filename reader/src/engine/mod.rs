//! The waist: what turns requests into filled buffers. Above it nobody knows how bytes are fetched,
//! below it nobody knows what they mean.
//!
//! ```text
//! ReadRequest { source, offset, len, buffer, token }  -- submit -->  engine
//! Completion  { token, result: Filled or Failed }     <- complete -  (any order)
//! ```
//!
//! Rules that every engine keeps, whatever the device is:
//! - A request owns its buffer and its file until its completion, which gives the buffer back, also
//!   where the read failed. Each request submitted is completed once, or dropped with the engine.
//! - A failed read is a completion; `EngineError` means that the engine itself cannot go on.
//! - Where the source is direct, the engine reads whole blocks of 4096 bytes and says where in the
//!   buffer the wanted bytes begin. It delivers all of them or an error, never fewer.
//! - Dropping an engine drains it: no read goes on afterwards.
//!
//! No retries but for interrupted and short reads, no checksums, no caching: that is the reader's.

mod buffer;
mod pread;

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use buffer::{BLOCK_LEN, Buffer, BufferPool, Filled};
pub use pread::PreadEngine;

/// [`BLOCK_LEN`] as a file offset.
const BLOCK: u64 = BLOCK_LEN as u64;

/// Fetches bytes of files into buffers, many requests at a time.
pub trait Engine: Send {
    /// Takes a request. It never waits for a read: an engine that can hold no more in flight queues
    /// the rest. An engine may also collect requests, and start them by the next `complete`.
    ///
    /// # Errors
    /// Where the engine can take no requests any more; the request is dropped.
    fn submit(&mut self, request: ReadRequest) -> Result<(), EngineError>;

    /// Appends to `out` what has been completed, in any order. With [`Wait::One`] and requests in
    /// flight it appends at least one; with none in flight it appends nothing and does not wait.
    ///
    /// # Errors
    /// Where requests are in flight that the engine can no longer complete.
    fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<(), EngineError>;

    /// Requests that have been submitted and not yet handed out by `complete`.
    fn in_flight(&self) -> usize;

    /// What it has done since it was made.
    fn stats(&self) -> EngineStats;

    /// Its name, for statistics and messages.
    fn name(&self) -> &'static str;
}

/// How long `complete` waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    None,
    /// Until one request has been completed.
    One,
}

/// A read to be done.
#[derive(Debug)]
pub struct ReadRequest {
    /// The file.
    pub source: Arc<Source>,
    /// The first byte wanted, from the start of the file.
    pub offset: u64,
    /// Bytes wanted.
    pub len: usize,
    /// Where they go. It holds [`Source::buffer_len`] bytes or more.
    pub buffer: Buffer,
    /// The caller's name for the request; the engine gives it back and does not look at it.
    pub token: u64,
}

impl ReadRequest {
    /// What an engine has to read for this request, after a check that file and buffer hold it.
    ///
    /// # Errors
    /// Where the wanted bytes end past the file, or the buffer is too small.
    pub fn span(&self) -> Result<Span, ReadError> {
        let source = &self.source;
        let end = self.offset.checked_add(self.len as u64).filter(|&end| end <= source.file_len);
        if end.is_none() {
            return Err(source.end_of_file(self.range(), source.file_len));
        }
        let span = source.mode().span(self.offset, self.len);
        if span.len > self.buffer.capacity() {
            return Err(ReadError::BufferTooSmall {
                path: source.path.clone(),
                range: self.range(),
                needed: span.len,
                capacity: self.buffer.capacity(),
            });
        }
        Ok(span)
    }

    /// The wanted bytes as a range of the file.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.len as u64)
    }
}

/// What an engine reads for a request: the wanted bytes, widened to whole blocks for a direct source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Whether offset, length and memory have to be whole blocks.
    pub mode: IoMode,
    /// The first byte to read, from the start of the file.
    pub offset: u64,
    /// Bytes to read; those behind the wanted ones may lie past the end of the file.
    pub len: usize,
    /// Where the wanted bytes lie in the buffer.
    pub wanted: Range<usize>,
}

/// A request that is over.
#[derive(Debug)]
pub struct Completion {
    /// The request's token.
    pub token: u64,
    /// All bytes wanted, or why there are none. Either gives the buffer back.
    pub result: Result<Filled, Failed>,
}

/// A read that failed.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub error: ReadError,
    /// The request's buffer, with arbitrary bytes in it.
    pub buffer: Buffer,
}

/// What an engine has done since it was made. Bytes read divided by bytes wanted is the read
/// amplification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Requests submitted.
    pub request_count: u64,
    /// Bytes of successful requests, as they were asked for.
    pub wanted_bytes: u64,
    /// Bytes that files delivered: widened to blocks, those of failed and repeated reads too.
    pub read_bytes: u64,
}

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoMode {
    /// Past the page cache, in whole blocks.
    Direct,
    /// Through the page cache, exactly the wanted bytes.
    Buffered,
}

impl IoMode {
    fn span(self, offset: u64, len: usize) -> Span {
        let wanted_start = match self {
            Self::Direct if len > 0 => (offset % BLOCK) as usize,
            _ => 0,
        };
        let wanted = wanted_start..wanted_start.saturating_add(len);
        let len = match self {
            Self::Direct => wanted.end.checked_next_multiple_of(BLOCK_LEN).unwrap_or(usize::MAX),
            Self::Buffered => len,
        };
        Span { mode: self, offset: offset - wanted_start as u64, len, wanted }
    }
}

/// Bytes at an offset: what a [`Source`] needs of a file. Tests stand in for a device with it.
pub trait ReadAt: Send + Sync {
    /// Reads into the start of `bytes` and returns how many there are now: fewer than asked for
    /// where it pleases, none only at the end of the file.
    ///
    /// # Errors
    /// Those of `pread`. `Interrupted` makes the engine ask again; `EINVAL` to a direct read makes
    /// it turn to buffered ones.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The file's length in bytes, as it is now.
    ///
    /// # Errors
    /// Where it cannot be told.
    fn file_len(&self) -> io::Result<u64>;

    /// Makes direct reads buffered from now on.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn leave_direct(&self) -> io::Result<()> {
        Ok(())
    }

    /// The open file, for engines that hand it to the kernel themselves.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl ReadAt for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn file_len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(target_os = "linux")]
    fn leave_direct(&self) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(self)?;
        Ok(rustix::fs::fcntl_setfl(self, flags - rustix::fs::OFlags::DIRECT)?)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

/// An opened file that requests read from.
pub struct Source {
    path: Arc<Path>,
    reader: Box<dyn ReadAt>,
    file_len: u64,
    asked: IoMode,
    direct: AtomicBool,
}

impl Source {
    /// Opens a file. Where direct I/O is asked for and the file system, or its alignment, does not
    /// allow it, the source is buffered and says so by [`Source::fell_back`].
    ///
    /// # Errors
    /// Where the file cannot be opened.
    pub fn open(path: impl AsRef<Path>, mode: IoMode) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let direct = match mode {
            IoMode::Direct => open_direct(path),
            IoMode::Buffered => Ok(None),
        };
        let (file, now) = match direct {
            Ok(Some(file)) => (Ok(file), IoMode::Direct),
            Ok(None) => (File::open(path), IoMode::Buffered),
            Err(source) => (Err(source), mode),
        };
        let file = file.map_err(|source| ReadError::Open { path: path.into(), source })?;
        let source = Self::from_reader(path, file, mode)?;
        source.direct.store(now == IoMode::Direct, Ordering::Release);
        Ok(source)
    }

    /// Makes a source of anything that reads bytes at an offset; `path` names it in errors. The
    /// length is asked once: nothing behind it is read, since segments do not grow.
    ///
    /// # Errors
    /// Where the reader does not tell its length.
    pub fn from_reader(path: impl AsRef<Path>, reader: impl ReadAt + 'static, mode: IoMode) -> Result<Self, ReadError> {
        let path: Arc<Path> = path.as_ref().into();
        let file_len = match reader.file_len() {
            Ok(file_len) => file_len,
            Err(source) => return Err(ReadError::Open { path, source }),
        };
        let direct = AtomicBool::new(mode == IoMode::Direct);
        Ok(Self { path, reader: Box::new(reader), file_len, asked: mode, direct })
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file when it was opened.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// How it is read now.
    #[must_use]
    pub fn mode(&self) -> IoMode {
        if self.direct.load(Ordering::Acquire) { IoMode::Direct } else { IoMode::Buffered }
    }

    /// Whether direct I/O was asked for and refused, at opening or by a read since.
    #[must_use]
    pub fn fell_back(&self) -> bool {
        self.asked != self.mode()
    }

    /// Bytes that the buffer of a request has to hold: more than `len` for a direct source.
    #[must_use]
    pub fn buffer_len(&self, offset: u64, len: usize) -> usize {
        self.mode().span(offset, len).len
    }

    /// The open file, where there is one; for engines that hand it to the kernel themselves.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.fd()
    }

    /// One read, which may be short; for engines.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.reader.read_at(bytes, offset)?.min(bytes.len()))
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
    fn end_seen_at(&self, read_len: u64) -> u64 {
        self.reader.file_len().map_or(read_len, |now| now.min(read_len))
    }

    fn end_of_file(&self, range: Range<u64>, file_len: u64) -> ReadError {
        ReadError::EndOfFile { path: self.path.clone(), range, file_len }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).field("mode", &self.mode()).finish_non_exhaustive()
    }
}

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
fn is_refusal(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error())
}

/// Why a file or bytes of it could not be read. The cause is the error's source, not in its text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened, or its length is not to be had.
    #[error("{}: cannot open the file", path.display())]
    Open {
        /// The file.
        path: Arc<Path>,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a read.
    #[error("{}: cannot read bytes {}..{}, failed at {failed_at}", path.display(), range.start, range.end)]
    Io {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
        /// Where the read that failed began; in a direct source it may begin before the range.
        failed_at: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file is shorter than what was wanted of it.
    #[error("{}: file ends at {file_len}, wanted bytes {}..{}", path.display(), range.start, range.end)]
    EndOfFile {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
        /// Where the file ends.
        file_len: u64,
    },
    /// The request's buffer does not hold what has to be read: a mistake of the caller.
    #[error("{}: bytes {}..{} need a buffer of {needed} bytes, it holds {capacity}", path.display(), range.start, range.end)]
    BufferTooSmall {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
        /// Bytes that the buffer has to hold.
        needed: usize,
        /// Bytes that it holds.
        capacity: usize,
    },
    /// The code that reads panicked: a mistake of ours.
    #[error("{}: reading bytes {}..{} panicked", path.display(), range.start, range.end)]
    Panicked {
        /// The file.
        path: Arc<Path>,
        /// The bytes wanted.
        range: Range<u64>,
    },
}

/// Why an engine cannot work, whatever the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// It could not be started.
    #[error("cannot start the {engine} engine")]
    Start {
        /// Its name.
        engine: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It has stopped, and what is in flight will never be completed.
    #[error("the {engine} engine has stopped with {in_flight} reads in flight")]
    Stopped {
        /// Its name.
        engine: &'static str,
        /// Requests that are lost.
        in_flight: usize,
    },
}
