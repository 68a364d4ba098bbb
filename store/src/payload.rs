//! From stored bytes to a payload: first the checksum, then LZ4. spec.md: ENT-5, RAW-2, RD-1.

use grainstore_format::{MAX_LZ4_RAW_LEN, to_usize};

use crate::copy_crc::{append_with_crc, copy_over_with_crc};
use crate::location::{Encoding, Location};

/// What is wrong with the stored bytes of a sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The number of bytes is not the stored length.
    #[error("{found} stored bytes, the entry has {expected}")]
    Length {
        /// Bytes given.
        found: u64,
        /// Stored length.
        expected: u64,
    },
    /// The bytes are not those that were written.
    #[error("CRC-32 of stored bytes {offset}..{end} is {found:08x}, the entry has {expected:08x}")]
    Crc {
        /// Where the bytes start in the segment's file.
        offset: u64,
        /// Where they end.
        end: u64,
        /// Of the bytes read.
        found: u32,
        /// Of the bytes written.
        expected: u32,
    },
    /// The stored bytes are not an LZ4 block.
    #[error("stored bytes {offset}..{end} are not an LZ4 block: {what}")]
    Lz4 {
        /// Where the bytes start in the segment's file.
        offset: u64,
        /// Where they end.
        end: u64,
        /// The decoder's error.
        what: String,
    },
    /// The LZ4 block is whole, but its raw length is wrong.
    #[error("the LZ4 block decodes to {found} bytes, the index has {expected}")]
    RawLen {
        /// Decoded bytes.
        found: u64,
        /// Raw length.
        expected: u64,
    },
    /// The buffer for the payload is too small or too large.
    #[error("a buffer of {found} bytes for a payload of {expected}")]
    Room {
        /// Bytes of the buffer.
        found: u64,
        /// Raw length.
        expected: u64,
    },
}

/// Checks the stored bytes of a sample, whatever their encoding: first their length, then their checksum.
///
/// # Errors
/// If one of them is not that of the entry.
pub fn check_stored(location: &Location, stored: &[u8]) -> Result<(), PayloadError> {
    check_stored_len(location, stored)?;
    let found = crc32fast::hash(stored);
    if found == location.crc { Ok(()) } else { Err(wrong_crc(location, found)) }
}

/// Copies the stored bytes of a raw sample into `raw` and checks the copy, in one pass. On an error, all of `raw` is 0.
///
/// # Errors
/// If the bytes or the buffer have another length, or the checksum is not that of the entry.
pub fn copy_checked(location: &Location, stored: &[u8], raw: &mut [u8]) -> Result<(), PayloadError> {
    let copied = check_stored_len(location, stored).and_then(|()| {
        if raw.len() != stored.len() {
            return Err(PayloadError::Room { found: raw.len() as u64, expected: location.raw_len() });
        }
        let found = copy_over_with_crc(stored, raw);
        if found == location.crc { Ok(()) } else { Err(wrong_crc(location, found)) }
    });
    if copied.is_err() {
        raw.fill(0);
    }
    copied
}

/// Writes the raw payload of a sample into `raw`, whose length is [`Location::raw_len`]. The checksum is not checked:
/// call [`check_stored`] first. On an error, the contents of `raw` are unspecified.
///
/// # Errors
/// If the bytes or the buffer have another length, or the LZ4 block is damaged or has another raw length.
pub fn decode_into(location: &Location, stored: &[u8], raw: &mut [u8]) -> Result<(), PayloadError> {
    check_stored_len(location, stored)?;
    if raw.len() as u64 != location.raw_len() {
        return Err(PayloadError::Room { found: raw.len() as u64, expected: location.raw_len() });
    }
    match location.encoding {
        Encoding::Raw => raw.copy_from_slice(stored),
        Encoding::Lz4 { .. } => decode_lz4(location, stored, raw)?,
    }
    Ok(())
}

/// Checks the stored bytes of a sample and appends its raw payload to `out`. On an error `out` is unchanged.
///
/// # Errors
/// If the checksum fails, or the LZ4 block is damaged or has another raw length.
pub fn check_and_decode(location: &Location, stored: &[u8], out: &mut Vec<u8>) -> Result<(), PayloadError> {
    let Encoding::Lz4 { raw_len } = location.encoding else {
        check_stored_len(location, stored)?;
        let start = out.len();
        let found = append_with_crc(stored, out);
        if found == location.crc {
            return Ok(());
        }
        out.truncate(start);
        return Err(wrong_crc(location, found));
    };
    check_stored(location, stored)?;
    // `locate` refuses longer ones; a location from elsewhere must not allocate more either.
    if raw_len > MAX_LZ4_RAW_LEN {
        return Err(PayloadError::RawLen { found: 0, expected: raw_len });
    }
    let start = out.len();
    out.resize(start + to_usize(raw_len), 0);
    let (_, raw) = out.split_at_mut(start);
    let decoded = decode_into(location, stored, raw);
    if decoded.is_err() {
        out.truncate(start);
    }
    decoded
}

/// The error of a wrong checksum.
pub(crate) fn wrong_crc(location: &Location, found: u32) -> PayloadError {
    let end = location.offset.saturating_add(location.stored_len);
    PayloadError::Crc { offset: location.offset, end, found, expected: location.crc }
}

fn check_stored_len(location: &Location, stored: &[u8]) -> Result<(), PayloadError> {
    let found = stored.len() as u64;
    let expected = location.stored_len;
    if found == expected { Ok(()) } else { Err(PayloadError::Length { found, expected }) }
}

/// Decodes one LZ4 block that must fill `raw`.
fn decode_lz4(location: &Location, stored: &[u8], raw: &mut [u8]) -> Result<(), PayloadError> {
    match lz4_flex::block::decompress_into(stored, raw) {
        Ok(len) if len == raw.len() => Ok(()),
        Ok(len) => Err(PayloadError::RawLen { found: len as u64, expected: raw.len() as u64 }),
        Err(error) => {
            let end = location.offset.saturating_add(location.stored_len);
            Err(PayloadError::Lz4 { offset: location.offset, end, what: error.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(stored: &[u8], encoding: Encoding) -> Location {
        Location { segment: 0, offset: 4096, stored_len: stored.len() as u64, crc: crc32fast::hash(stored), encoding }
    }

    /// ENT-5, RD-1
    #[test]
    fn returns_nothing_if_the_checksum_fails() {
        let mut out = b"before".to_vec();
        let location = located(b"hello", Encoding::Raw);
        let error = check_and_decode(&location, b"hellp", &mut out).unwrap_err();
        assert!(matches!(error, PayloadError::Crc { offset: 4096, end: 4101, .. }));
        assert!(check_and_decode(&location, b"hell", &mut out).is_err());
        assert_eq!(out, b"before");
        check_and_decode(&location, b"hello", &mut out).unwrap();
        assert_eq!(out, b"beforehello");
    }

    /// RAW-2
    #[test]
    fn an_lz4_block_of_another_raw_length_is_damaged() {
        let raw = b"abcabcabcabcabcabcabcabc".repeat(10);
        let stored = lz4_flex::block::compress(&raw);
        let mut out = Vec::new();
        for raw_len in [raw.len() as u64 - 1, raw.len() as u64 + 1, u64::MAX] {
            assert!(check_and_decode(&located(&stored, Encoding::Lz4 { raw_len }), &stored, &mut out).is_err());
            assert!(out.is_empty());
        }
        let whole = located(&stored, Encoding::Lz4 { raw_len: raw.len() as u64 });
        check_and_decode(&whole, &stored, &mut out).unwrap();
        assert_eq!(out, raw);
        let cut = located(&stored[..stored.len() - 3], Encoding::Lz4 { raw_len: raw.len() as u64 });
        assert!(check_and_decode(&cut, &stored[..stored.len() - 3], &mut out).is_err());
    }

    /// RAW-2
    #[test]
    fn a_payload_is_decoded_only_into_a_buffer_of_its_raw_length() {
        let payload = b"abcabcabcabcabcabcabcabc".repeat(10);
        let block = lz4_flex::block::compress(&payload);
        let lz4 = located(&block, Encoding::Lz4 { raw_len: payload.len() as u64 });
        for (location, stored) in [(located(&payload, Encoding::Raw), &payload), (lz4, &block)] {
            let mut room = vec![0xEE; payload.len() + 1];
            for len in [0, payload.len() - 1, payload.len() + 1] {
                let error = decode_into(&location, stored, &mut room[..len]).unwrap_err();
                assert_eq!(error, PayloadError::Room { found: len as u64, expected: payload.len() as u64 });
            }
            assert!(decode_into(&location, &stored[1..], &mut room[..payload.len()]).is_err());
            decode_into(&location, stored, &mut room[..payload.len()]).unwrap();
            assert_eq!((&room[..payload.len()], room[payload.len()]), (&payload[..], 0xEE));
        }
    }

    #[test]
    fn an_lz4_block_that_does_not_fill_its_buffer_is_damaged() {
        let block = lz4_flex::block::compress(&[7; 100]);
        for raw_len in [99, 101] {
            let location = located(&block, Encoding::Lz4 { raw_len });
            check_stored(&location, &block).unwrap();
            assert!(decode_into(&location, &block, &mut vec![0; to_usize(raw_len)]).is_err(), "{raw_len}");
        }
    }
}
