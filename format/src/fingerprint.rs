//! Fingerprints: identify a segment or a dataset by its content. spec.md: FPR-1, FPR-2, EXT-2.

use xxhash_rust::xxh64::{Xxh64, xxh64};

use crate::to_usize;

/// Bytes at the start and at the end of a data file that its fingerprint covers. spec.md: EXT-2.
const FINGERPRINTED_LEN: u64 = 65536;

/// A 64-bit fingerprint. Printed, and written in the manifest, as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// The fingerprint of an index, and of the segment that it belongs to: the hash of its directory, which holds the
    /// checksums of all checksums.
    pub fn of_directory(bytes: &[u8]) -> Self {
        Self(xxh64(bytes, 0))
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower_hex = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match u64::from_str_radix(text, 16) {
            Ok(value) if lower_hex => Ok(Self(value)),
            _ => {
                let shown = crate::escape_bytes(text.as_bytes());
                Err(format!("fingerprint \"{shown}\" is not 16 lower-case hexadecimal digits"))
            }
        }
    }
}

/// Combines the fingerprints of segments into that of a dataset, or those of datasets into that of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetFingerprint(u64);

impl DatasetFingerprint {
    /// The fingerprint of no segments.
    pub fn new() -> Self {
        Self(0)
    }

    /// Adds the next segment, or dataset.
    pub fn push(&mut self, segment: Fingerprint, sample_count: u64) {
        let mut hasher = Xxh64::new(0);
        for word in [self.0, segment.0, sample_count] {
            hasher.update(&word.to_le_bytes());
        }
        self.0 = hasher.digest();
    }

    /// The fingerprint of what was added so far.
    pub fn get(self) -> Fingerprint {
        Fingerprint(self.0)
    }
}

impl Default for DatasetFingerprint {
    fn default() -> Self {
        Self::new()
    }
}

/// The fingerprint of an external data file, from its first and last 65536 bytes (all bytes of a shorter file) and its
/// length.
pub fn data_fingerprint(head: &[u8], tail: &[u8], file_len: u64) -> Fingerprint {
    let mut hasher = Xxh64::new(0);
    hasher.update(head);
    hasher.update(tail);
    hasher.update(&file_len.to_le_bytes());
    Fingerprint(hasher.digest())
}

/// [`data_fingerprint`] of a file of `file_len` bytes. `read` fills a buffer from an offset of the file.
///
/// # Errors
/// Those of `read`.
pub fn data_fingerprint_of<E>(
    file_len: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<(), E>,
) -> Result<Fingerprint, E> {
    let len = file_len.min(FINGERPRINTED_LEN);
    let mut head = vec![0; to_usize(len)];
    let mut tail = vec![0; to_usize(len)];
    read(&mut head, 0)?;
    read(&mut tail, file_len - len)?;
    Ok(data_fingerprint(&head, &tail, file_len))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FPR-1, FPR-2, EXT-2
    #[test]
    fn fingerprints_are_the_xxh64_that_the_rules_define() {
        assert_eq!(Fingerprint::of_directory(b"abc").0, xxh64(b"abc", 0));
        let mut chain = DatasetFingerprint::new();
        assert_eq!(chain.get(), Fingerprint(0));
        chain.push(Fingerprint(5), 9);
        let bytes = [0_u64, 5, 9].map(u64::to_le_bytes).concat();
        assert_eq!(chain.get().0, xxh64(&bytes, 0));
        assert_eq!(data_fingerprint(b"ab", b"bc", 3).0, xxh64(b"abbc\x03\0\0\0\0\0\0\0", 0));
    }

    /// EXT-2
    #[test]
    fn only_the_ends_of_a_data_file_are_read() {
        for len in [0, 1, 65535, 65536, 65537, 200_000_usize] {
            let bytes: Vec<u8> = (0..len).map(|i| u8::try_from(i % 251).unwrap()).collect();
            let read = |buffer: &mut [u8], offset: u64| {
                buffer.copy_from_slice(&bytes[to_usize(offset)..][..buffer.len()]);
                Ok::<(), ()>(())
            };
            let end = len.min(65536);
            let expected = data_fingerprint(&bytes[..end], &bytes[len - end..], len as u64);
            assert_eq!(data_fingerprint_of(len as u64, read), Ok(expected), "{len}");
        }
    }

    #[test]
    fn text_round_trips() {
        let text = Fingerprint(0xAB).to_string();
        assert_eq!((text.as_str(), text.parse()), ("00000000000000ab", Ok(Fingerprint(0xAB))));
        for bad in ["", "ab", "00000000000000AB", "+0000000000000ab", "00000000000000ab0"] {
            assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
        }
    }
}
