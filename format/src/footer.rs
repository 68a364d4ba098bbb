//! The footer: the last 64 bytes of every file. It holds the position of the directory. spec.md: FTR-1 to FTR-4.

use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{check_incompatible, check_version, ensure};
use crate::{BLOCK_LEN, FormatError, VERSION, round_up};

const MAGIC: [u8; 8] = *b"GRAINEND";
const WHAT: &str = "footer";

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawFooter {
    magic: [u8; 8],
    version: U32,
    incompatible_features: U32,
    compatible_features: U32,
    directory_len: U32,
    directory_offset: U64,
    index_offset: U64,
    file_len: U64,
    directory_crc: U32,
    reserved: [u8; 8],
    crc: U32,
}
const _: () = {
    assert!(size_of::<RawFooter>() == Footer::LEN);
    assert!(std::mem::offset_of!(RawFooter, crc) == 60);
};

impl RawFooter {
    /// The CRC-32 of all bytes before the field `crc`.
    fn computed_crc(&self) -> u32 {
        let bytes: &[u8; Footer::LEN] = zerocopy::transmute_ref!(self);
        let [covered @ .., _, _, _, _] = bytes;
        crc32fast::hash(covered)
    }
}

/// Where the index is in a file. Every range is inside the file that the footer was decoded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    index_offset: u64,
    directory_offset: u64,
    directory_len: u32,
    directory_crc: u32,
}

impl Footer {
    /// The length of a footer in bytes.
    pub const LEN: usize = 64;

    /// The footer of a file whose sections begin at `index_offset` and whose `directory` is at `directory_offset`.
    ///
    /// # Errors
    /// If the directory is longer than the format allows.
    pub fn new(index_offset: u64, directory_offset: u64, directory: &[u8]) -> Result<Self, FormatError> {
        let directory_len = u32::try_from(directory.len()).map_err(|_| FormatError::Limit {
            what: "directory length",
            found: directory.len() as u64,
            limit: u64::from(u32::MAX),
        })?;
        Ok(Self { index_offset, directory_offset, directory_len, directory_crc: crc32fast::hash(directory) })
    }

    /// Reads the last 64 bytes of a file of `file_len` bytes.
    ///
    /// # Errors
    /// If a rule of the footer is broken.
    pub fn decode(bytes: &[u8], file_len: u64) -> Result<Self, FormatError> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().map_err(|_| FormatError::Length {
            what: WHAT,
            found: bytes.len() as u64,
            expected: Self::LEN.to_string(),
        })?;
        let raw: &RawFooter = zerocopy::transmute_ref!(bytes);
        if raw.magic != MAGIC {
            let found = "it does not end with a footer (it is cut short, or another kind of file)".to_owned();
            return Err(FormatError::NotGrainstore { what: "file", found });
        }
        check_version(u64::from(raw.version.get()))?;
        let crc = raw.computed_crc();
        ensure(crc == raw.crc.get(), WHAT, || format!("its CRC-32 is {crc:08x}, it has {:08x}", raw.crc))?;
        check_incompatible(raw.incompatible_features.get())?;
        ensure(raw.reserved == [0; 8] || raw.compatible_features.get() != 0, WHAT, || {
            "reserved bytes are not zero".into()
        })?;
        let footer = Self {
            index_offset: raw.index_offset.get(),
            directory_offset: raw.directory_offset.get(),
            directory_len: raw.directory_len.get(),
            directory_crc: raw.directory_crc.get(),
        };
        if raw.file_len.get() != file_len {
            return Err(FormatError::Length { what: "file", found: file_len, expected: raw.file_len.to_string() });
        }
        footer.check(file_len)?;
        Ok(footer)
    }

    fn check(&self, file_len: u64) -> Result<(), FormatError> {
        let index = self.index_offset;
        let directory = self.directory_offset;
        ensure(index >= BLOCK_LEN && index.is_multiple_of(BLOCK_LEN), WHAT, || {
            format!("index_offset {index} is not the start of a block after the header")
        })?;
        ensure(directory.is_multiple_of(BLOCK_LEN) && index < directory, WHAT, || {
            format!("directory_offset {directory} is not the start of a block after index_offset {index}")
        })?;
        // A directory that ends past the end of the file could not be read.
        let end = directory.checked_add(u64::from(self.directory_len) + Self::LEN as u64);
        ensure(end.is_some_and(|end| end <= file_len && round_up(end, BLOCK_LEN) == file_len), WHAT, || {
            format!(
                "directory {directory}..+{} and footer do not end in the file's last block ({file_len} bytes)",
                self.directory_len
            )
        })
    }

    /// The footer's bytes.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut raw = RawFooter {
            magic: MAGIC,
            version: U32::new(VERSION),
            incompatible_features: U32::ZERO,
            compatible_features: U32::ZERO,
            directory_len: U32::new(self.directory_len),
            directory_offset: U64::new(self.directory_offset),
            index_offset: U64::new(self.index_offset),
            file_len: U64::new(self.file_len()),
            directory_crc: U32::new(self.directory_crc),
            reserved: [0; 8],
            crc: U32::ZERO,
        };
        raw.crc = U32::new(raw.computed_crc());
        zerocopy::transmute!(raw)
    }

    /// The length of the whole file in bytes.
    pub fn file_len(&self) -> u64 {
        round_up(self.directory_offset + u64::from(self.directory_len) + Self::LEN as u64, BLOCK_LEN)
    }

    /// Where the first section starts.
    pub fn index_offset(&self) -> u64 {
        self.index_offset
    }

    /// Where the directory starts.
    pub fn directory_offset(&self) -> u64 {
        self.directory_offset
    }

    /// The length of the directory in bytes.
    pub fn directory_len(&self) -> u32 {
        self.directory_len
    }

    /// The CRC-32 of the directory.
    pub fn directory_crc(&self) -> u32 {
        self.directory_crc
    }
}
