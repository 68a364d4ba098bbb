//! An archive's bytes by their offset: of a file, anywhere; of a stream, only forwards.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use grainstore_format::to_usize;

/// Bytes by their offset.
pub(super) trait Bytes {
    /// Fills `buffer` from `offset` on and says how far; fewer bytes than asked for stand before the end only.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Where they end, where that is known.
    fn len(&self) -> Option<u64>;
}

/// A file, with what was read around the last place.
#[derive(Debug)]
pub(super) struct FileBytes {
    file: Arc<File>,
    len: u64,
    window: Vec<u8>,
    window_offset: u64,
}

impl FileBytes {
    /// Asked for where reading goes on behind the window: many small members.
    const NEAR_LEN: usize = 32 << 10;
    /// Asked for elsewhere: a header behind a large payload.
    const FAR_LEN: usize = 4 << 10;

    pub(super) fn new(file: File, len: u64) -> Self {
        Self { file: Arc::new(file), len, window: Vec::new(), window_offset: 0 }
    }

    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Copies what the window has.
    fn copy_window(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        let from = to_usize(offset.checked_sub(self.window_offset)?);
        let there = self.window.get(from..from.checked_add(buffer.len())?)?;
        buffer.copy_from_slice(there);
        Some(())
    }

    fn move_window(&mut self, offset: u64) -> io::Result<()> {
        let end = self.window_offset + self.window.len() as u64;
        let is_near = offset >= self.window_offset && offset <= end + Self::FAR_LEN as u64;
        self.window.resize(if is_near { Self::NEAR_LEN } else { Self::FAR_LEN }, 0);
        self.window_offset = offset;
        let filled = fill(&self.file, offset, &mut self.window);
        self.window.truncate(*filled.as_ref().unwrap_or(&0));
        filled.map(drop)
    }
}

impl Bytes for FileBytes {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.copy_window(offset, buffer).is_some() {
            return Ok(buffer.len());
        }
        if buffer.len() >= Self::FAR_LEN {
            return fill(&self.file, offset, buffer);
        }
        self.move_window(offset)?;
        let there = self.window.len().min(buffer.len());
        buffer[..there].copy_from_slice(&self.window[..there]);
        Ok(there)
    }

    fn len(&self) -> Option<u64> {
        Some(self.len)
    }
}

/// As much of `buffer` as the file has from `offset` on.
fn fill(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A stream. What lies before the last place is gone.
pub(super) struct StreamBytes<R> {
    stream: R,
    offset: u64,
    has_ended: bool,
}

impl<R: Read> StreamBytes<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, offset: 0, has_ended: false }
    }

    fn skip_to(&mut self, offset: u64) -> io::Result<()> {
        let missing = offset.checked_sub(self.offset).ok_or_else(|| io::Error::other("a stream is read once"))?;
        let skipped = io::copy(&mut (&mut self.stream).take(missing), &mut io::sink())?;
        self.offset += skipped;
        self.has_ended |= skipped < missing;
        Ok(())
    }
}

impl<R: Read> Bytes for StreamBytes<R> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.skip_to(offset)?;
        let mut filled = 0;
        while filled < buffer.len() && !self.has_ended {
            match self.stream.read(&mut buffer[filled..]) {
                Ok(0) => self.has_ended = true,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }

    fn len(&self) -> Option<u64> {
        self.has_ended.then_some(self.offset)
    }
}

/// Bytes `offset..offset + len`, where they are there; memory grows with what is read, not with `len`.
pub(super) fn read_run(bytes: &mut dyn Bytes, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    /// Asked for at once.
    const STEP_LEN: u64 = 4 << 20;
    let mut run = Vec::new();
    while (run.len() as u64) < len {
        let from = run.len();
        run.resize(from + to_usize(STEP_LEN.min(len - from as u64)), 0);
        let found = bytes.read_at(offset + from as u64, &mut run[from..])?;
        if from + found < run.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(run)
}
