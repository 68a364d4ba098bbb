//! Bitmaps: edges and validity. spec.md: CON-6.

use crate::FormatError;
use crate::error::ensure;

/// A checked bitmap: its length fits, and the unused bits are zero.
#[derive(Debug, Clone, Copy)]
pub struct Bitmap<'a> {
    bytes: &'a [u8],
    len: u64,
}

impl<'a> Bitmap<'a> {
    /// A bitmap of `len` bits in `bytes`.
    ///
    /// # Errors
    /// If the number of bytes is wrong, or unused bits are set.
    pub fn decode(bytes: &'a [u8], len: u64) -> Result<Self, FormatError> {
        ensure(bytes.len() as u64 == len.div_ceil(8), "bitmap", || format!("{} bytes for {len} bits", bytes.len()))?;
        let used = len % 8;
        let tail = bytes.last().copied().unwrap_or(0);
        ensure(used == 0 || tail >> used == 0, "bitmap", || "unused bits are set".into())?;
        Ok(Self { bytes, len })
    }

    /// Bit `index`; false past the end.
    pub fn get(&self, index: u64) -> bool {
        let byte = usize::try_from(index / 8).ok().and_then(|i| self.bytes.get(i)).copied().unwrap_or(0);
        byte >> (index % 8) & 1 == 1
    }

    /// Bits `64 * index` to `64 * index + 63`, the first the least significant; zeros past the end.
    pub fn word(&self, index: u64) -> u64 {
        // Past the end there are no bytes, so the bits are zero.
        let from = usize::try_from(index).ok().and_then(|index| index.checked_mul(8));
        let bytes = from.and_then(|from| self.bytes.get(from..)).unwrap_or_default();
        match bytes.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        }
    }

    /// The bytes; bit 0 is the least significant of the first one.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The number of bits.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of bits that are set.
    pub fn count_ones(&self) -> u64 {
        self.bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }
}

/// Makes a bitmap bit by bit, and returns each byte when it is full.
#[derive(Debug, Default)]
pub struct BitmapBuilder {
    current: u8,
    used: u8,
}

impl BitmapBuilder {
    /// Adds a bit. Returns the byte if this bit completes one.
    pub fn push(&mut self, bit: bool) -> Option<u8> {
        self.current |= u8::from(bit) << self.used;
        self.used += 1;
        if self.used < 8 {
            return None;
        }
        self.used = 0;
        Some(std::mem::take(&mut self.current))
    }

    /// The last byte, if it is partly filled.
    pub fn finish(self) -> Option<u8> {
        (self.used > 0).then_some(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CON-6
    #[test]
    fn bits_are_least_significant_first_and_unused_ones_zero() {
        let mut builder = BitmapBuilder::default();
        let bits = [true, false, false, true, false, false, false, false, true, true];
        let mut bytes: Vec<u8> = bits.iter().filter_map(|&bit| builder.push(bit)).collect();
        bytes.extend(builder.finish());
        assert_eq!(bytes, [0b1001, 0b11]);
        let bitmap = Bitmap::decode(&bytes, 10).unwrap();
        assert!(bits.iter().enumerate().all(|(i, &bit)| bitmap.get(i as u64) == bit));
        assert_eq!((bitmap.count_ones(), bitmap.get(10), bitmap.get(u64::MAX)), (4, false, false));
        assert_eq!((bitmap.word(0), bitmap.word(1), bitmap.word(u64::MAX)), (0b11_0000_1001, 0, 0));
        let long = Bitmap::decode(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 80).unwrap();
        assert_eq!((long.word(0), long.word(1)), (0x0706_0504_0302_0100, 0x0908));
        assert!(Bitmap::decode(&[0, 0b100], 10).is_err());
        assert!(Bitmap::decode(&[0], 10).is_err());
    }
}
