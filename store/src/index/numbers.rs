//! Little-endian numbers in a section.

use grainstore_format::to_usize;

/// A little-endian number of up to 8 bytes.
#[inline]
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    // The usual widths take one step each.
    match (bytes.try_into(), bytes.try_into()) {
        (Ok(bytes), _) => u64::from_le_bytes(bytes),
        (_, Ok(bytes)) => u64::from(u32::from_le_bytes(bytes)),
        _ => bytes.iter().rev().take(8).fold(0, |value, &byte| value << 8 | u64::from(byte)),
    }
}

/// The little-endian numbers of `width` bytes in `bytes`.
pub(crate) fn numbers(bytes: &[u8], width: u32) -> impl ExactSizeIterator<Item = u64> + '_ {
    bytes.chunks_exact(to_usize(u64::from(width.max(1)))).map(little_endian)
}
