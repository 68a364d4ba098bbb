//! Files that may be compressed: gzip, zlib and zstd are known by their first bytes, whatever the file's name.

use grainstore_host::open_regular;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

/// Bytes of a file that are asked for at once.
const BUFFER_LEN: usize = 1 << 20;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// It is not.
    None,
    /// RFC 1952, any number of members.
    Gzip,
    /// RFC 1950.
    Zlib,
    /// RFC 8878, any number of frames.
    Zstd,
}

impl Compression {
    /// What a file begins with. Two bytes that look like zlib may be anything: a caller that expects a format
    /// inside looks whether it is there.
    pub fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [cmf, flg, ..] if cmf & 0x0f == 8 && cmf >> 4 <= 7 && flg & 0x20 == 0 && is_zlib(*cmf, *flg) => Self::Zlib,
            _ => Self::None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    /// The content of `compressed`.
    ///
    /// # Errors
    /// Where a decoder cannot be made.
    pub fn reader<'a>(self, compressed: impl BufRead + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
        Ok(match self {
            Self::None => Box::new(compressed),
            Self::Gzip => Box::new(MultiGzDecoder::new(compressed)),
            Self::Zlib => Box::new(ZlibDecoder::new(compressed)),
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(compressed)?),
        })
    }
}

/// RFC 1950: the two bytes, as a number, are a multiple of 31.
fn is_zlib(cmf: u8, flg: u8) -> bool {
    (u32::from(cmf) * 256 + u32::from(flg)).is_multiple_of(31)
}

/// A file and how it is compressed. A regular file only: what looks like zlib is that where `is_inside` likes the first
/// bytes of its content better than those of the file.
///
/// # Errors
/// Where it cannot be opened or read.
pub fn detect(path: &Path, is_inside: impl Fn(&[u8]) -> bool) -> io::Result<(File, Compression)> {
    let (file, _) = open_regular(path)?;
    let head = head_of(&mut &file)?;
    let found = match Compression::of(&head) {
        Compression::Zlib if is_inside(&head) || !is_inside(&content_head(&head, Compression::Zlib)) => {
            Compression::None
        }
        other => other,
    };
    let mut file = file;
    io::Seek::rewind(&mut file)?;
    Ok((file, found))
}

/// The content of a file, decompressed as `compression` says, from its start.
///
/// # Errors
/// Where it cannot be opened.
pub fn open(path: &Path, compression: Compression) -> io::Result<Box<dyn Read + Send>> {
    let (file, _) = open_regular(path)?;
    compression.reader(BufReader::with_capacity(BUFFER_LEN, file))
}

/// The first bytes of what `head`, the first bytes of a compressed file, holds; as many as are available.
pub fn content_head(head: &[u8], compression: Compression) -> Vec<u8> {
    let mut content = Vec::new();
    if let Ok(reader) = compression.reader(Cursor::new(head.to_vec())) {
        // The head ends in the middle of the stream: what came before the error is what there is.
        let _ = reader.take(HEAD_LEN as u64).read_to_end(&mut content);
    }
    content
}

/// Bytes at a file's start that formats are known by.
pub const HEAD_LEN: usize = 65536;

/// The first bytes of a stream, 64 KiB or all.
///
/// # Errors
/// What the stream says.
pub fn head_of(stream: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    stream.take(HEAD_LEN as u64).read_to_end(&mut head)?;
    Ok(head)
}
