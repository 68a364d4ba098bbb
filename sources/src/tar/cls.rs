//! `.cls` members of an archive: an integer in ASCII.

/// A `.cls` of more bytes is not an integer.
pub(super) const LEN_MAX: u64 = 64;

/// The integer that a `.cls` holds, white space around it aside.
pub(super) fn parse(content: &[u8]) -> Option<i64> {
    std::str::from_utf8(content.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_integers_with_white_space_around_them() {
        assert_eq!(parse(b" -12\n"), Some(-12));
        assert_eq!(parse(b"9223372036854775807"), Some(i64::MAX));
        for bad in [&b""[..], b"1.0", b"9223372036854775808", b"cat", b"1 2", b"\xff", b"0x10"] {
            assert_eq!(parse(bad), None);
        }
    }
}
