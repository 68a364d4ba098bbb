//! From stored bytes to a payload: the checksum first, then LZ4. spec.md: ENT-5, RAW-2, RD-1.

use grainstore_format::{MAX_LZ4_RAW_LEN, to_usize};

use crate::location::{Encoding, Location};

/// What is wrong with the stored bytes of a sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// Too few or too many bytes were handed in.
    #[error("{found} stored bytes, entry says {expected}")]
    Length {
        /// Bytes handed in.
        found: u64,
        /// Stored length.
        expected: u64,
    },
    /// The bytes are not those that were written.
    #[error("CRC-32 of stored bytes {offset}..{end} is {found:08x}, entry says {expected:08x}")]
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
    /// The stored bytes are no LZ4 block.
    #[error("stored bytes {offset}..{end} are no LZ4 block: {what}")]
    Lz4 {
        /// Where the bytes start in the segment's file.
        offset: u64,
        /// Where they end.
        end: u64,
        /// What the decoder said.
        what: String,
    },
    /// The LZ4 block is whole, but of another length.
    #[error("LZ4 block yields {found} bytes, the index says {expected}")]
    RawLen {
        /// Decoded bytes.
        found: u64,
        /// Raw length.
        expected: u64,
    },
    /// The room handed in for the payload is too small or too large.
    #[error("room for {found} raw bytes, the index says {expected}")]
    Room {
        /// Bytes of room handed in.
        found: u64,
        /// Raw length.
        expected: u64,
    },
}

/// Checks the stored bytes of a sample, whatever they encode: their length, then their checksum.
///
/// # Errors
/// Where either is not what the entry says.
pub fn check_stored(location: &Location, stored: &[u8]) -> Result<(), PayloadError> {
    check_stored_len(location, stored)?;
    let found = crc32fast::hash(stored);
    if found == location.crc { Ok(()) } else { Err(wrong_crc(location, found)) }
}

/// Writes the raw payload of a sample into `raw`, whose length is [`Location::raw_len`]. The checksum is not looked
/// at: [`check_stored`] comes first. On an error, what `raw` holds is of no use.
///
/// # Errors
/// Where the bytes or the room are of another length, or the LZ4 block is damaged or of another length.
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

/// Checks the stored bytes of a sample and appends its raw payload to `out`, which is left as it was on an error.
///
/// # Errors
/// Where the checksum fails, or the LZ4 block is damaged or of another length.
pub fn check_and_decode(location: &Location, stored: &[u8], out: &mut Vec<u8>) -> Result<(), PayloadError> {
    check_stored(location, stored)?;
    let Encoding::Lz4 { raw_len } = location.encoding else {
        out.extend_from_slice(stored);
        return Ok(());
    };
    // `locate` has refused longer ones; a location made by hand must not allocate more either.
    if raw_len > MAX_LZ4_RAW_LEN {
        return Err(PayloadError::RawLen { found: 0, expected: raw_len });
    }
    let start = out.len();
    out.resize(start + to_usize(raw_len), 0);
    let decoded = decode_into(location, stored, out.get_mut(start..).unwrap_or_default());
    if decoded.is_err() {
        out.truncate(start);
    }
    decoded
}

/// The error of a checksum that was made while the bytes streamed by.
pub(crate) fn wrong_crc(location: &Location, found: u32) -> PayloadError {
    let end = location.offset.saturating_add(location.stored_len);
    PayloadError::Crc { offset: location.offset, end, found, expected: location.crc }
}

fn check_stored_len(location: &Location, stored: &[u8]) -> Result<(), PayloadError> {
    let (found, expected) = (stored.len() as u64, location.stored_len);
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

    fn location(stored: &[u8], encoding: Encoding) -> Location {
        Location { segment: 0, offset: 4096, stored_len: stored.len() as u64, crc: crc32fast::hash(stored), encoding }
    }

    /// ENT-5, RD-1
    #[test]
    fn hands_out_nothing_whose_checksum_fails() {
        let mut out = b"before".to_vec();
        let place = location(b"hello", Encoding::Raw);
        let error = check_and_decode(&place, b"hellp", &mut out).unwrap_err();
        assert!(matches!(error, PayloadError::Crc { offset: 4096, end: 4101, .. }));
        assert!(check_and_decode(&place, b"hell", &mut out).is_err());
        assert_eq!(out, b"before");
        check_and_decode(&place, b"hello", &mut out).unwrap();
        assert_eq!(out, b"beforehello");
    }

    /// RAW-2
    #[test]
    fn an_lz4_block_of_another_length_is_damaged() {
        let raw = b"abcabcabcabcabcabcabcabc".repeat(10);
        let stored = lz4_flex::block::compress(&raw);
        let mut out = Vec::new();
        for raw_len in [raw.len() as u64 - 1, raw.len() as u64 + 1, u64::MAX] {
            assert!(check_and_decode(&location(&stored, Encoding::Lz4 { raw_len }), &stored, &mut out).is_err());
            assert!(out.is_empty());
        }
        let whole = location(&stored, Encoding::Lz4 { raw_len: raw.len() as u64 });
        check_and_decode(&whole, &stored, &mut out).unwrap();
        assert_eq!(out, raw);
        let cut = location(&stored[..stored.len() - 3], Encoding::Lz4 { raw_len: raw.len() as u64 });
        assert!(check_and_decode(&cut, &stored[..stored.len() - 3], &mut out).is_err());
    }

    /// RAW-2
    #[test]
    fn a_payload_is_decoded_only_into_room_of_its_raw_length() {
        let payload = b"abcabcabcabcabcabcabcabc".repeat(10);
        let block = lz4_flex::block::compress(&payload);
        let lz4 = location(&block, Encoding::Lz4 { raw_len: payload.len() as u64 });
        for (place, stored) in [(location(&payload, Encoding::Raw), &payload), (lz4, &block)] {
            let mut room = vec![0xEE; payload.len() + 1];
            for len in [0, payload.len() - 1, payload.len() + 1] {
                let error = decode_into(&place, stored, &mut room[..len]).unwrap_err();
                assert_eq!(error, PayloadError::Room { found: len as u64, expected: payload.len() as u64 });
            }
            assert!(decode_into(&place, &stored[1..], &mut room[..payload.len()]).is_err());
            decode_into(&place, stored, &mut room[..payload.len()]).unwrap();
            assert_eq!((&room[..payload.len()], room[payload.len()]), (&payload[..], 0xEE));
        }
    }

    #[test]
    fn an_lz4_block_that_does_not_fill_its_room_is_damaged() {
        let block = lz4_flex::block::compress(&[7; 100]);
        for raw_len in [99, 101] {
            let place = location(&block, Encoding::Lz4 { raw_len });
            check_stored(&place, &block).unwrap();
            assert!(decode_into(&place, &block, &mut vec![0; to_usize(raw_len)]).is_err(), "{raw_len}");
        }
    }
}
