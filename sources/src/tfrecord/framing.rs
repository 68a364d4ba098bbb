//! How a TFRecord file frames its records, and how to write such frames.
//!
//! ```text
//! length u64 | masked CRC-32C of the length u32 | data | masked CRC-32C of the data u32      little-endian
//! ```

/// Bytes before a record's data.
pub const HEADER_LEN: usize = 12;
/// Bytes after a record's data.
pub const FOOTER_LEN: usize = 4;

/// The bytes before and after the data of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The bytes before the data.
    pub header: [u8; HEADER_LEN],
    /// The bytes after the data.
    pub footer: [u8; FOOTER_LEN],
}

/// The frame of a record with this payload.
pub fn frame(payload: &[u8]) -> Frame {
    let len = (payload.len() as u64).to_le_bytes();
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&len);
    header[8..].copy_from_slice(&masked_crc(&len).to_le_bytes());
    Frame { header, footer: masked_crc(payload).to_le_bytes() }
}

/// The CRC-32C of `bytes`, masked.
pub fn masked_crc(bytes: &[u8]) -> u32 {
    mask(crc32c::crc32c(bytes))
}

/// Masks a CRC for storing. A CRC over data that contain CRCs would be weak, so TFRecord stores masked ones.
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Whether these first bytes of an uncompressed file are a TFRecord file's: they begin with a length and its CRC.
pub fn recognises(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|header| data_len(header).is_ok())
}

/// A length whose CRC is not the one in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongCrc {
    pub(super) computed: u32,
    pub(super) stored: u32,
}

/// The length of the data, from the header.
pub(super) fn data_len(header: &[u8; HEADER_LEN]) -> Result<u64, WrongCrc> {
    let mut len = [0; 8];
    let mut stored = [0; 4];
    len.copy_from_slice(&header[..8]);
    stored.copy_from_slice(&header[8..]);
    check(masked_crc(&len), stored).map(|()| u64::from_le_bytes(len))
}

/// Whether a masked CRC is the one that is stored.
pub(super) fn check(computed: u32, stored: [u8; 4]) -> Result<(), WrongCrc> {
    let stored = u32::from_le_bytes(stored);
    if computed == stored { Ok(()) } else { Err(WrongCrc { computed, stored }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by `tf.io.TFRecordWriter` for the record `b"abc"`.
    const ABC: &[u8] = b"\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0eabc\x6e\x57\xf1\x21";

    #[test]
    fn a_frame_is_what_tensorflow_writes() {
        let Frame { header, footer } = frame(b"abc");
        assert_eq!([&header[..], b"abc", &footer[..]].concat(), ABC);
        assert_eq!(data_len(&header), Ok(3));
    }

    #[test]
    fn a_file_is_recognised_by_its_first_length_and_nothing_else() {
        assert!(recognises(ABC));
        assert!(recognises(&ABC[..HEADER_LEN]));
        assert!(!recognises(&ABC[..HEADER_LEN - 1]));
        assert!(!recognises(&[0; 65536]));
        for bit in 0..HEADER_LEN * 8 {
            let mut head = ABC.to_vec();
            head[bit / 8] ^= 1 << (bit % 8);
            assert!(!recognises(&head), "bit {bit}");
        }
    }
}
