//! An LZ4 block decoder that follows the description of the block format line by line. Slow and obvious.

/// The decoded bytes; none where the block is damaged, or yields more than `limit` bytes.
pub(crate) fn decode(block: &[u8], limit: usize) -> Option<Vec<u8>> {
    let (mut at, mut out) = (0, Vec::new());
    loop {
        let token = *block.get(at)?;
        at += 1;
        let literal_len = extended(block, &mut at, usize::from(token >> 4))?;
        out.extend_from_slice(block.get(at..at.checked_add(literal_len)?)?);
        at += literal_len;
        if out.len() > limit {
            return None;
        }
        if at == block.len() {
            return Some(out);
        }
        let offset = usize::from(u16::from_le_bytes([*block.get(at)?, *block.get(at + 1)?]));
        at += 2;
        let match_len = extended(block, &mut at, usize::from(token & 15))? + 4;
        if offset == 0 || offset > out.len() || match_len > limit - out.len() {
            return None;
        }
        for _ in 0..match_len {
            out.push(out[out.len() - offset]);
        }
    }
}

/// A length of 15 goes on: bytes are added up to the first that is not 255.
fn extended(block: &[u8], at: &mut usize, nibble: usize) -> Option<usize> {
    let mut len = nibble;
    if nibble == 15 {
        loop {
            let byte = *block.get(*at)?;
            *at += 1;
            len += usize::from(byte);
            if byte < 255 {
                break;
            }
        }
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::decode;

    /// CON-4
    #[test]
    fn decodes_what_a_compressor_writes() {
        let raw = b"abcabcabcabcabcabcabcabcabcabcabc and something else".repeat(30);
        assert_eq!(decode(&lz4_flex::block::compress(&raw), raw.len()).unwrap(), raw);
        assert_eq!(decode(&[0x10, b'a', 1, 0], 100), None, "a last sequence must have literals only");
        assert_eq!(decode(&[0x14, b'a', 1, 0, 0x10, b'b'], 100).unwrap(), b"aaaaaaaaab");
        assert_eq!(decode(&[0x14, b'a', 1, 0, 0x10, b'b'], 9), None);
    }
}
