//! Where a sample is stored, and how.

/// Where the stored bytes of a sample are, their checksum and encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The segment's number.
    pub segment: usize,
    /// From the start of the segment's file, in bytes.
    pub offset: u64,
    /// Bytes as stored.
    pub stored_len: u64,
    /// CRC-32 of the stored bytes.
    pub crc: u32,
    /// How the payload is stored.
    pub encoding: Encoding,
}

/// How a payload is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Unchanged.
    Raw,
    /// One LZ4 block.
    Lz4 {
        /// Bytes of the payload, at most 64 MiB.
        raw_len: u64,
    },
}

impl Location {
    /// Bytes of the payload once decoded.
    pub fn raw_len(&self) -> u64 {
        match self.encoding {
            Encoding::Raw => self.stored_len,
            Encoding::Lz4 { raw_len } => raw_len,
        }
    }
}
