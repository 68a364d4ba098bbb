//! Lengths in lists of keys and of categories. spec.md: CON-7.

/// Appends `value` in the fewest bytes.
pub(crate) fn push_varint(bytes: &mut Vec<u8>, value: usize) {
    let mut rest = value;
    while rest >= 0x80 {
        bytes.push(low_7_bits(rest) | 0x80);
        rest >>= 7;
    }
    bytes.push(low_7_bits(rest));
}

fn low_7_bits(value: usize) -> u8 {
    let [low, ..] = (value as u64).to_le_bytes();
    low & 0x7F
}

/// Splits a length of at most three bytes off `bytes`. Returns it, and the bytes after it; the error is what is wrong.
pub(crate) fn split_varint(bytes: &[u8]) -> Result<(usize, &[u8]), &'static str> {
    let mut value = 0_usize;
    let mut shift = 0_u32;
    let mut rest = bytes;
    loop {
        let (&byte, after) = rest.split_first().ok_or("it ends in the middle of a length")?;
        rest = after;
        value |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return if byte != 0 || shift == 0 {
                Ok((value, rest))
            } else {
                Err("a length is not in its shortest form")
            };
        }
        shift += 7;
        if shift > 14 {
            return Err("a length has more than three bytes");
        }
    }
}
