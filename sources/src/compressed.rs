//! Files that may be compressed. Gzip, zlib and zstd are recognised by the first bytes, not by the file's name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use grainstore_host::open_regular;

/// Bytes of a file that are read at once.
const BUFFER_LEN: usize = 1 << 20;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// RFC 1952, any number of members.
    Gzip,
    /// RFC 1950.
    Zlib,
    /// RFC 8878, any number of frames.
    Zstd,
}

impl Compression {
    /// The compression of a file that begins with `head`. Two bytes that look like zlib may be anything, so the caller
    /// checks that the content is in the format that it expects.
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

/// Opens a regular file and finds how it is compressed. A file that looks like zlib counts as zlib only if `is_inside`
/// accepts the first bytes of its content and not those of the file itself.
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

/// The content of a file from its start, decompressed.
///
/// # Errors
/// Where it cannot be opened.
pub fn open(path: &Path, compression: Compression) -> io::Result<Box<dyn Read + Send>> {
    let (file, _) = open_regular(path)?;
    compression.reader(BufReader::with_capacity(BUFFER_LEN, file))
}

/// Decompresses `head`, the first bytes of a compressed file, as far as possible.
pub fn content_head(head: &[u8], compression: Compression) -> Vec<u8> {
    let mut content = Vec::new();
    if let Ok(reader) = compression.reader(Cursor::new(head.to_vec())) {
        // The head ends in the middle of the stream: what came before the error is what there is.
        let _ = reader.take(HEAD_LEN as u64).read_to_end(&mut content);
    }
    content
}

/// Bytes at a file's start by which formats are recognised.
pub const HEAD_LEN: usize = 65536;

/// The first bytes of a stream, 64 KiB or all.
///
/// # Errors
/// The error of the stream.
pub fn head_of(stream: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    stream.take(HEAD_LEN as u64).read_to_end(&mut head)?;
    Ok(head)
}
