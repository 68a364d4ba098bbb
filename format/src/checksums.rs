//! Checksums of sections: one CRC-32 for each piece of 64 KiB. spec.md: DIR-6.

use crate::FormatError;
use crate::error::ensure;

/// Bytes that one checksum covers.
pub const PIECE_LEN: u64 = 65536;

/// Makes the list of checksums of a section while it streams by.
#[derive(Debug, Default)]
pub struct ChecksumBuilder {
    list: Vec<u8>,
    current: crc32fast::Hasher,
    current_len: u64,
}

impl ChecksumBuilder {
    /// Takes the next bytes of the section.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = usize::try_from(PIECE_LEN - self.current_len).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.current.update(now);
            self.current_len += now.len() as u64;
            if self.current_len == PIECE_LEN {
                self.close_piece();
            }
            bytes = later;
        }
    }

    /// The list's bytes, 4 for each piece.
    pub fn finish(mut self) -> Vec<u8> {
        if self.current_len > 0 {
            self.close_piece();
        }
        self.list
    }

    fn close_piece(&mut self) {
        let crc = std::mem::take(&mut self.current).finalize();
        self.list.extend_from_slice(&crc.to_le_bytes());
        self.current_len = 0;
    }
}

/// A section's list of checksums, itself checked.
#[derive(Debug, Clone)]
pub struct ChecksumList(Vec<u8>);

impl ChecksumList {
    /// Takes the list read from disk, which must sum to `crc`.
    ///
    /// # Errors
    /// Where it does not.
    pub fn decode(bytes: Vec<u8>, crc: u32) -> Result<Self, FormatError> {
        let found = crc32fast::hash(&bytes);
        ensure(found == crc, "list of checksums", || {
            format!("its CRC-32 is {found:08x}, the directory says {crc:08x}")
        })?;
        Ok(Self(bytes))
    }

    /// Checks one piece of the section.
    ///
    /// # Errors
    /// Where its CRC-32 is not the list's.
    pub fn check_piece(&self, piece: u64, bytes: &[u8]) -> Result<(), FormatError> {
        let expected = usize::try_from(piece)
            .ok()
            .and_then(|piece| self.0.get(piece.checked_mul(4)?..)?.first_chunk::<4>())
            .map(|bytes| u32::from_le_bytes(*bytes));
        let found = crc32fast::hash(bytes);
        ensure(expected == Some(found), "index", || {
            let from = piece * PIECE_LEN;
            let to = from + bytes.len() as u64;
            format!(
                "CRC-32 of section bytes {from}..{to} is {found:08x}, its list says {:08x}",
                expected.unwrap_or_default()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CON-2
    #[test]
    fn crc32_is_that_of_zlib() {
        assert_eq!((crc32fast::hash(b"123456789"), crc32fast::hash(b"")), (0xcbf4_3926, 0));
    }

    /// DIR-6
    #[test]
    fn checks_each_piece_by_itself_however_the_bytes_arrive() {
        let bytes: Vec<u8> = (0..150_000u32).map(|i| (i % 251) as u8).collect();
        let mut builder = ChecksumBuilder::default();
        bytes.chunks(7777).for_each(|part| builder.update(part));
        let list = builder.finish();
        assert_eq!(list.len(), 12);
        let checked = ChecksumList::decode(list.clone(), crc32fast::hash(&list)).unwrap();
        for (i, piece) in bytes.chunks(65536).enumerate() {
            checked.check_piece(i as u64, piece).unwrap();
            let mut flipped = piece.to_vec();
            flipped[17] ^= 1;
            assert!(checked.check_piece(i as u64, &flipped).is_err());
        }
        assert!(checked.check_piece(3, b"x").is_err(), "there is no fourth piece");
        assert!(ChecksumList::decode(list, 1).is_err());
    }
}
