//! Gives the `parquet` crate the bytes of a file, within bounds.
//!
//! A page header claims how long its page is when it is decompressed. The crate trusts it and allocates up to 2 GiB
//! before it reads the data, so the header is checked here first.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Bytes that any page may have.
const PAGE_LEN: u64 = 16 << 20;

/// And this many more for each stored byte: the best ratio of deflate.
const PAGE_GROWTH: u64 = 1032;

/// Page headers are small, but may hold statistics.
const HEADER_BUFFER_LEN: usize = 1024;

/// A file of known length that the crate reads from.
#[derive(Clone, Debug)]
pub(super) struct FileAt {
    pub(super) file: Arc<File>,
    pub(super) len: u64,
}

/// A file of which only pages are read: each read begins at a page header, which is checked.
pub(super) struct PagesAt(pub(super) FileAt);

/// A stream of a file from a position on.
pub(super) struct FileReader {
    file: Arc<File>,
    at: u64,
    /// How often nothing was found because the file had ended.
    end_count: u32,
}

thread_local! {
    /// Whether this thread is in [`contained`].
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread means a damaged Parquet file, which is reported as an error. For panic hooks, so that
/// they do not report it again.
pub fn is_contained() -> bool {
    CONTAINED.get()
}

/// Runs the crate on untrusted bytes. It checks much, but not everything: a panic in it means that the file is damaged.
/// The crate's objects are dropped after an error.
pub(super) fn contained<T>(work: impl FnOnce() -> Result<T>) -> std::result::Result<T, String> {
    let outer = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(outer);
    match result {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("it makes no sense to the decoder, which gave up".into()),
    }
}

impl FileAt {
    fn stream(&self, at: u64) -> BufReader<FileReader> {
        BufReader::with_capacity(HEADER_BUFFER_LEN, FileReader { file: self.file.clone(), at, end_count: 0 })
    }

    fn bytes(&self, start: u64, len: usize) -> Result<Bytes> {
        if start.checked_add(len as u64).is_none_or(|end| end > self.len) {
            let text = format!("{len} bytes at byte {start} end past the file's {}", self.len);
            return Err(ParquetError::EOF(text));
        }
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

impl Length for FileAt {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for FileAt {
    type T = BufReader<FileReader>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.stream(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.bytes(start, length)
    }
}

impl Length for PagesAt {
    fn len(&self) -> u64 {
        self.0.len
    }
}

impl ChunkReader for PagesAt {
    type T = BufReader<FileReader>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut head = Vec::new();
        self.0.stream(start).take(HEAD_LEN).read_to_end(&mut head)?;
        let (page_len, stored_len) = page_lens(&head)
            .ok_or_else(|| ParquetError::General(format!("the bytes at {start} are not a page header")))?;
        if page_len > PAGE_LEN.saturating_add(stored_len.saturating_mul(PAGE_GROWTH)) {
            let text = format!("the page at byte {start} would grow from {stored_len} bytes to {page_len}");
            return Err(ParquetError::General(text));
        }
        Ok(self.0.stream(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.bytes(start, length)
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read_at(buffer, self.at)?;
        self.at += len as u64;
        // A header may claim a list of billions of elements; the crate skips them and takes the end of the file for an
        // empty element each time.
        self.end_count += u32::from(len == 0 && !buffer.is_empty());
        if self.end_count > ENDS_MAX { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(len) }
    }
}

/// How often a read after the end is allowed.
const ENDS_MAX: u32 = 64;
/// Bytes that are enough for three small fields.
const HEAD_LEN: u64 = 24;

/// Lengths of a page, as it is and as it is stored: fields 2 and 3 of its header, which all writers write in order.
fn page_lens(head: &[u8]) -> Option<(u64, u64)> {
    let mut bytes = head.iter().copied();
    let mut field = || {
        // Thrift's compact protocol: the field after the last one, an i32.
        (bytes.next()? == 0x15).then_some(())?;
        zigzag(&mut bytes)
    };
    let _kind = field()?;
    Some((u64::try_from(field()?).ok()?, u64::try_from(field()?).ok()?))
}

fn zigzag(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let byte = bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return i64::try_from(number >> 1).ok().map(|half| if number & 1 == 0 { half } else { -half - 1 });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_of_a_page_are_read_from_its_header() {
        assert_eq!(page_lens(&[0x15, 0x04, 0x15, 0xd8, 0x04, 0x15, 0xda, 0x04, 0x2c]), Some((300, 301)));
        assert_eq!(page_lens(&[0x15, 0x04, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 2]), Some((0x7fff_ffff, 1)));
        for head in [&[][..], &[0x15], &[0x15, 0, 0x15, 1, 0x15, 2], &[0x15, 0, 0x25, 2, 0x15, 2], &[0x15; 24]] {
            assert_eq!(page_lens(head).filter(|lens| *lens != (10, 10)), None, "{head:?}");
        }
        assert_eq!(page_lens(&[0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x15, 2]), None);
    }

    #[test]
    fn a_panic_in_the_decoder_is_an_error() {
        let result = contained(|| -> Result<()> { std::panic::resume_unwind(Box::new("no")) });
        assert_eq!(result.unwrap_err(), "it makes no sense to the decoder, which gave up");
    }
    #[test]
    fn reads_after_the_end_are_allowed_only_a_number_of_times() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"page").unwrap();
        let mut stream = FileReader { file: Arc::new(file), at: 0, end_count: 0 };
        let mut buffer = [0; 8];
        assert_eq!(stream.read(&mut buffer).unwrap(), 4);
        let ends = (0..1000).take_while(|_| matches!(stream.read(&mut buffer), Ok(0))).count();
        assert_eq!(ends, ENDS_MAX as usize);
        assert_eq!(stream.read(&mut buffer).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
