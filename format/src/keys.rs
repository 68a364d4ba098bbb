//! Keys: hashes, buckets and slots (key -> ordinal), and the list of keys itself (ordinal -> key).
//!
//! The slots of a bucket are sorted by hash, then ordinal. Nothing is built at open. spec.md: KEY-1 to KEY-7.

use crate::FormatError;
use crate::error::ensure;
use crate::varint::{push_varint, split_varint};

const WHAT: &str = "list of keys";

/// The longest key in bytes.
pub const MAX_KEY_LEN: usize = 65535;

/// Bytes of a slot.
pub const SLOT_LEN: usize = 7;

/// The 48 hash bits of a key. spec.md: KEY-2.
pub fn hash48(key: &[u8], hash_seed: u64) -> u64 {
    xxhash_rust::xxh64::xxh64(key, hash_seed) >> 16
}

/// How hashes are split between buckets and slots in an index of a given size. spec.md: KEY-2, KEY-3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyGeometry {
    bucket_bits: u32,
}

impl KeyGeometry {
    /// The geometry of an index of `sample_count` samples, 1 to 2^40.
    pub fn new(sample_count: u64) -> Self {
        let bits = 64 - sample_count.saturating_sub(1).leading_zeros();
        Self { bucket_bits: bits.saturating_sub(5).min(40) }
    }

    /// The number of buckets.
    pub fn bucket_count(self) -> u64 {
        1 << self.bucket_bits
    }

    /// The bucket of a hash.
    pub fn bucket(self, hash48: u64) -> u64 {
        hash48 >> (48 - self.bucket_bits)
    }

    /// The slot of a hash and an ordinal.
    pub fn slot(self, hash48: u64, ordinal: u64) -> u64 {
        let within = hash48 & ((1 << (48 - self.bucket_bits)) - 1);
        within << (8 + self.bucket_bits) | ordinal
    }

    /// The ordinal in a slot.
    pub fn ordinal(self, slot: u64) -> u64 {
        slot & ((1 << (8 + self.bucket_bits)) - 1)
    }

    /// The whole hash of a slot in `bucket`.
    pub fn hash48(self, bucket: u64, slot: u64) -> u64 {
        bucket << (48 - self.bucket_bits) | slot >> (8 + self.bucket_bits)
    }

    /// Bytes per element of section BUCKETS.
    pub fn bucket_width(sample_count: u64) -> u32 {
        if sample_count < 1 << 32 { 4 } else { 8 }
    }

    /// A slot's bytes.
    pub fn encode_slot(slot: u64) -> [u8; SLOT_LEN] {
        let [a, b, c, d, e, f, g, _] = slot.to_le_bytes();
        [a, b, c, d, e, f, g]
    }

    /// A slot from its bytes.
    pub fn decode_slot(bytes: &[u8; SLOT_LEN]) -> u64 {
        let [a, b, c, d, e, f, g] = *bytes;
        u64::from_le_bytes([a, b, c, d, e, f, g, 0])
    }
}

/// The layout of section KEYS: groups of 64 keys. spec.md: KEY-7.
#[derive(Debug, Clone, Copy)]
pub struct KeyGroups;

impl KeyGroups {
    /// Keys in a group.
    pub const GROUP_LEN: u64 = 64;

    /// The number of elements of section KEY_GROUPS.
    pub fn count(sample_count: u64) -> u64 {
        sample_count.div_ceil(Self::GROUP_LEN) + 1
    }

    /// The key at `position` (0 to 63) in the bytes of a group.
    ///
    /// # Errors
    /// If the bytes are not keys, or end too early.
    pub fn key_in_group(mut group: &[u8], position: u64) -> Result<&[u8], FormatError> {
        for _ in 0..position {
            group = split_key(group)?.1;
        }
        Ok(split_key(group)?.0)
    }
}

/// Appends `varint(len)` and the key. spec.md: KEY-7, CON-7.
///
/// # Errors
/// If the key is empty or too long. spec.md: KEY-1.
pub fn push_key(bytes: &mut Vec<u8>, key: &[u8]) -> Result<(), FormatError> {
    if key.is_empty() {
        return Err(FormatError::Invalid("a key is empty; keys have 1 to 65535 bytes".into()));
    }
    if key.len() > MAX_KEY_LEN {
        let limit = MAX_KEY_LEN as u64;
        return Err(FormatError::Limit { what: "key length", found: key.len() as u64, limit });
    }
    push_varint(bytes, key.len());
    bytes.extend_from_slice(key);
    Ok(())
}

/// Splits the first key off a list. Returns the key, and the bytes after it.
///
/// # Errors
/// If the length is not in its shortest form or out of range, or the list ends inside the key.
pub fn split_key(bytes: &[u8]) -> Result<(&[u8], &[u8]), FormatError> {
    let (len, rest) = split_varint(bytes).map_err(|what| FormatError::damaged(WHAT, what))?;
    ensure((1..=MAX_KEY_LEN).contains(&len), WHAT, || format!("a key has {len} bytes"))?;
    rest.split_at_checked(len)
        .ok_or_else(|| FormatError::damaged(WHAT, format!("it ends {} bytes into a key of {len}", rest.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CON-3
    #[test]
    fn xxh64_is_the_published_one() {
        use xxhash_rust::xxh64::xxh64;
        assert_eq!(xxh64(b"", 0), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"abc", 0), 0x44bc_2cf5_ad77_0999);
        assert_eq!(xxh64(b"abc", 7), 0x9e75_5206_1566_76d7);
    }

    /// KEY-2, KEY-3
    #[test]
    fn bucket_and_slot_together_hold_hash_and_ordinal() {
        for n in [1, 2, 32, 33, 64, 65, 1_281_167, 50_000_000, 1 << 32, 1 << 40] {
            let geometry = KeyGeometry::new(n);
            assert!(geometry.bucket_count() == 1 || n.div_ceil(geometry.bucket_count()) <= 32, "{n}");
            for (hash, ordinal) in [(0, 0), ((1 << 48) - 1, n - 1), (0x1234_5678_9ABC, n / 2)] {
                let slot = geometry.slot(hash, ordinal);
                assert!(slot < 1 << 56);
                let read = KeyGeometry::decode_slot(&KeyGeometry::encode_slot(slot));
                assert_eq!(geometry.ordinal(read), ordinal);
                assert_eq!(geometry.hash48(geometry.bucket(hash), read), hash);
            }
        }
        assert_eq!((KeyGeometry::new(32).bucket_count(), KeyGeometry::new(33).bucket_count()), (1, 2));
    }

    /// KEY-1, KEY-7, CON-7
    #[test]
    fn keys_of_every_length_round_trip() {
        let keys: Vec<Vec<u8>> = [1, 127, 128, 16383, 16384, 65535].iter().map(|&len| vec![b'k'; len]).collect();
        let mut list = Vec::new();
        for key in &keys {
            push_key(&mut list, key).unwrap();
        }
        for (position, key) in keys.iter().enumerate() {
            assert_eq!(KeyGroups::key_in_group(&list, position as u64).unwrap(), key);
        }
        assert!(KeyGroups::key_in_group(&list, 6).is_err());
        assert!(push_key(&mut list, b"").is_err());
        assert!(push_key(&mut list, &vec![0; 65536]).is_err());
    }

    /// KEY-1, CON-7
    #[test]
    fn refuses_lengths_that_no_writer_writes() {
        for bytes in
            [&[][..], &[0], &[0x80, 0], &[0x81, 0], &[0x80], &[0xFF, 0xFF, 0xFF, 0], &[0x80, 0x80, 4], &[2, b'a']]
        {
            assert!(split_key(bytes).is_err(), "{bytes:?}");
        }
        assert_eq!(split_key(&[2, b'a', b'b', b'c']).unwrap(), (&b"ab"[..], &b"c"[..]));
    }
}
