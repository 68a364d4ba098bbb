//! Checksums of sections: one CRC-32 for each checksum page of 64 KiB. spec.md: DIR-6.

use crate::error::ensure;
use crate::{FormatError, to_usize};

/// Bytes of a checksum page: one checksum covers them.
pub const CHECKSUM_PAGE_LEN: u64 = 65536;

/// Makes the list of checksums of a section while the section is written.
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
            let room = to_usize(CHECKSUM_PAGE_LEN - self.current_len);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.current.update(now);
            self.current_len += now.len() as u64;
            if self.current_len == CHECKSUM_PAGE_LEN {
                self.close_page();
            }
            bytes = later;
        }
    }

    /// The list's bytes, 4 for each page.
    pub fn finish(mut self) -> Vec<u8> {
        if self.current_len > 0 {
            self.close_page();
        }
        self.list
    }

    fn close_page(&mut self) {
        let crc = std::mem::take(&mut self.current).finalize();
        self.list.extend_from_slice(&crc.to_le_bytes());
        self.current_len = 0;
    }
}

/// A section's list of checksums, which has been checked itself.
#[derive(Debug, Clone)]
pub struct ChecksumList(Vec<u8>);

impl ChecksumList {
    /// Takes the list read from disk, whose own CRC-32 must be `crc`.
    ///
    /// # Errors
    /// If it is not.
    pub fn decode(bytes: Vec<u8>, crc: u32) -> Result<Self, FormatError> {
        let found = crc32fast::hash(&bytes);
        ensure(found == crc, "list of checksums", || {
            format!("its CRC-32 is {found:08x}, the directory has {crc:08x}")
        })?;
        Ok(Self(bytes))
    }

    /// Checks one page of the section.
    ///
    /// # Errors
    /// If its CRC-32 is not the one in the list.
    pub fn check_page(&self, page: u64, bytes: &[u8]) -> Result<(), FormatError> {
        let (list, _) = self.0.as_chunks::<4>();
        let Some(expected) = list.get(to_usize(page)) else {
            return Err(FormatError::damaged("index", format!("page {page} has no checksum in its list")));
        };
        let expected = u32::from_le_bytes(*expected);
        let found = crc32fast::hash(bytes);
        ensure(expected == found, "index", || {
            let from = page * CHECKSUM_PAGE_LEN;
            let to = from + bytes.len() as u64;
            format!("CRC-32 of section bytes {from}..{to} is {found:08x}, its list has {expected:08x}")
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
    fn checks_each_page_for_any_split_of_the_bytes() {
        let bytes: Vec<u8> = (0..150_000u32).map(|i| (i % 251) as u8).collect();
        let mut builder = ChecksumBuilder::default();
        bytes.chunks(7777).for_each(|part| builder.update(part));
        let list = builder.finish();
        assert_eq!(list.len(), 12);
        let checked = ChecksumList::decode(list.clone(), crc32fast::hash(&list)).unwrap();
        for (i, page) in bytes.chunks(65536).enumerate() {
            checked.check_page(i as u64, page).unwrap();
            let mut flipped = page.to_vec();
            flipped[17] ^= 1;
            assert!(checked.check_page(i as u64, &flipped).is_err());
        }
        assert!(checked.check_page(3, b"x").is_err(), "there is no fourth page");
        assert!(ChecksumList::decode(list, 1).is_err());
    }
}
