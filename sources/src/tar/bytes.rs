//! The bytes of an archive by offset: a file can be read anywhere, a stream only forwards.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use grainstore_format::to_usize;

/// Bytes that are read by offset.
pub(super) trait Bytes {
    /// Fills `buffer` from `offset` on and returns how far; fewer bytes than requested only at the end.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Their length, where it is known.
    fn len(&self) -> Option<u64>;
}

/// A file, with a window of bytes around the last read.
///
/// The header of a member is read before the payload of the member before it, so a window that moves keeps its last
/// bytes.
#[derive(Debug)]
pub(super) struct FileBytes {
    file: Arc<File>,
    len: u64,
    /// The window is its first bytes. It does not shrink, so that it is not cleared for each read.
    buffer: Vec<u8>,
    window_len: usize,
    window_offset: u64,
    /// Bytes to read next if reading continues after the window.
    step_len: usize,
}

impl FileBytes {
    /// Bytes to read first if reading continues after the window; doubled each time. For many small members.
    const STEP_LEN: usize = 32 << 10;
    const STEP_LEN_MAX: usize = 256 << 10;
    /// Bytes to read at any other offset: a header after a large payload.
    const FAR_LEN: usize = 4 << 10;
    /// Gaps up to this many bytes are read, not sought over.
    const GAP_LEN: u64 = 16 << 10;
    /// Bytes that a window keeps when it moves.
    const KEPT_LEN: usize = 64 << 10;

    pub(super) fn new(file: File, len: u64) -> Self {
        Self {
            file: Arc::new(file),
            len,
            buffer: Vec::new(),
            window_len: 0,
            window_offset: 0,
            step_len: Self::STEP_LEN,
        }
    }

    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Length of the file when it was opened.
    pub(super) fn file_len(&self) -> u64 {
        self.len
    }

    /// The bytes of `offset..offset + len` that the window has from `offset` on, and whether these are all.
    fn in_window(&self, offset: u64, len: usize) -> (&[u8], bool) {
        let from = offset.checked_sub(self.window_offset).map_or(usize::MAX, to_usize);
        let there = self.buffer[..self.window_len].get(from..).unwrap_or_default();
        let there = &there[..len.min(there.len())];
        (there, there.len() == len)
    }

    fn move_window(&mut self, offset: u64) -> io::Result<()> {
        let end = self.window_offset + self.window_len as u64;
        if (self.window_offset..=end + Self::GAP_LEN).contains(&offset) && self.window_len > 0 {
            self.extend(end)
        } else {
            self.step_len = Self::STEP_LEN;
            self.window_len = 0;
            self.window_offset = offset;
            self.append(offset, Self::FAR_LEN)
        }
    }

    /// Reads the bytes after the window.
    fn extend(&mut self, end: u64) -> io::Result<()> {
        let gone = self.window_len.saturating_sub(Self::KEPT_LEN);
        self.buffer.copy_within(gone..self.window_len, 0);
        self.window_len -= gone;
        self.window_offset += gone as u64;
        self.append(end, self.step_len)?;
        self.step_len = (self.step_len * 2).min(Self::STEP_LEN_MAX);
        Ok(())
    }

    fn append(&mut self, offset: u64, len: usize) -> io::Result<()> {
        let end = self.window_len + len;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        self.window_len += fill(&self.file, offset, &mut self.buffer[self.window_len..end])?;
        Ok(())
    }
}

impl Bytes for FileBytes {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.in_window(offset, buffer.len()).1 {
            if buffer.len() >= Self::FAR_LEN {
                return fill(&self.file, offset, buffer);
            }
            self.move_window(offset)?;
        }
        let (there, _) = self.in_window(offset, buffer.len());
        buffer[..there.len()].copy_from_slice(there);
        Ok(there.len())
    }

    fn len(&self) -> Option<u64> {
        Some(self.len)
    }
}

/// Fills `buffer` with the file's bytes from `offset` on; returns how many there are.
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

/// A stream. Bytes before the last read cannot be read again.
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

/// Reads `offset..offset + len`. Memory grows with what is read, not with `len`, which may be wrong.
pub(super) fn read_range(bytes: &mut dyn Bytes, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    /// Bytes to read at once.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads as an archive of small members is read: the header of the next member, then the payload before it.
    #[test]
    fn reads_give_the_bytes_of_the_file_also_after_a_large_member_and_at_the_end() {
        let bytes: Vec<u8> = (0..5_000_000_usize).map(|i| u8::try_from(i * 7 % 251).unwrap()).collect();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x"), &bytes).unwrap();
        let mut read = FileBytes::new(File::open(folder.path().join("x")).unwrap(), bytes.len() as u64);
        let mut at = 0;
        for step in 0.. {
            let payload_len = if step == 700 { 1_000_000 } else { 3072 };
            for (offset, len) in [(at + payload_len, 512), (at, payload_len)] {
                let mut found = vec![0; len];
                let count = read.read_at(offset as u64, &mut found).unwrap();
                let expected = bytes.get(offset..).unwrap_or_default();
                assert!(found[..count] == expected[..len.min(expected.len())], "{len} bytes at {offset}");
            }
            at += payload_len + 512;
            if at > bytes.len() {
                break;
            }
        }
        assert!(read.buffer.len() <= FileBytes::KEPT_LEN + FileBytes::STEP_LEN_MAX);
    }
}
