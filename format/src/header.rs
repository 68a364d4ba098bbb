//! The header: the first 4096 bytes of every file. spec.md: HDR-1.

use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{check_incompatible, check_version, ensure};
use crate::{FormatError, VERSION};

const MAGIC: [u8; 8] = *b"\x89GRAIN\r\n";
const WHAT: &str = "header";

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 8],
    version: U32,
    incompatible_features: U32,
    compatible_features: U32,
    kind: u8,
    reserved: [u8; 4071],
    crc: U32,
}
const _: () = {
    assert!(size_of::<RawHeader>() == Header::LEN);
    assert!(std::mem::offset_of!(RawHeader, reserved) == 21);
    assert!(std::mem::offset_of!(RawHeader, crc) == 4092);
};

impl RawHeader {
    /// The CRC-32 of all bytes before the field `crc`.
    fn computed_crc(&self) -> u32 {
        let bytes: &[u8; Header::LEN] = zerocopy::transmute_ref!(self);
        let [covered @ .., _, _, _, _] = bytes;
        crc32fast::hash(covered)
    }
}

/// The kind of a grainstore file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Samples and their index.
    Segment,
    /// An index alone: merged, or of an external segment.
    Index,
}

/// The checked header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the file holds.
    pub kind: FileKind,
}

impl Header {
    /// The first bytes of every segment and index file.
    pub const MAGIC: [u8; 8] = MAGIC;
    /// The length of a header in bytes.
    pub const LEN: usize = 4096;

    /// Reads a header from the first 4096 bytes of a file.
    ///
    /// # Errors
    /// If a rule of the header is broken.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().map_err(|_| FormatError::Length {
            what: WHAT,
            found: bytes.len() as u64,
            expected: Self::LEN.to_string(),
        })?;
        let raw: &RawHeader = zerocopy::transmute_ref!(bytes);
        if raw.magic != MAGIC {
            let found = format!("it begins with \"{}\"", raw.magic.escape_ascii());
            return Err(FormatError::NotGrainstore { what: "file", found });
        }
        check_version(u64::from(raw.version.get()))?;
        let crc = raw.computed_crc();
        ensure(crc == raw.crc.get(), WHAT, || format!("its CRC-32 is {crc:08x}, it has {:08x}", raw.crc))?;
        check_incompatible(raw.incompatible_features.get())?;
        let zero = raw.reserved.iter().all(|&byte| byte == 0);
        ensure(zero || raw.compatible_features.get() != 0, WHAT, || "reserved bytes are not zero".into())?;
        let kind = match raw.kind {
            1 => FileKind::Segment,
            2 => FileKind::Index,
            other => return Err(FormatError::damaged(WHAT, format!("kind is {other}, expected 1 or 2"))),
        };
        Ok(Self { kind })
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut raw = RawHeader {
            magic: MAGIC,
            version: U32::new(VERSION),
            incompatible_features: U32::ZERO,
            compatible_features: U32::ZERO,
            kind: match self.kind {
                FileKind::Segment => 1,
                FileKind::Index => 2,
            },
            reserved: [0; 4071],
            crc: U32::ZERO,
        };
        raw.crc = U32::new(raw.computed_crc());
        zerocopy::transmute!(raw)
    }
}
