//! Bytes of other people's making, made safe for a terminal.

/// `bytes` as text: printable UTF-8 stays, everything else (control characters, invalid bytes, quotes and
/// backslashes) becomes an escape, so that the result can stand between quotes on one line.
pub fn escape_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for part in bytes.utf8_chunks() {
        for character in part.valid().chars() {
            if character == '"' || character == '\\' || is_unsafe_to_print(character) {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in part.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Control characters, and those that reorder or hide the text around them.
fn is_unsafe_to_print(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::escape_bytes;

    #[test]
    fn printable_text_stays_and_the_rest_is_escaped() {
        assert_eq!(escape_bytes("n01/täst 1.jpg".as_bytes()), "n01/täst 1.jpg");
        assert_eq!(escape_bytes(b"a\n\x1b[31m\"\\\xff"), "a\\n\\u{1b}[31m\\\"\\\\\\xff");
        assert_eq!(escape_bytes("a\u{202e}b".as_bytes()), "a\\u{202e}b");
    }
}
