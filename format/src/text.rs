//! Names and keys that other people chose, made safe for a terminal.
//!
//! A file name may hold an escape sequence that moves the cursor, rewrites lines or reprograms keys. Every message of
//! every crate passes names, keys and paths through here.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Returns `bytes` as text for one line between quotes: printable UTF-8 stays, everything else (control characters,
/// invalid bytes, quotes and backslashes) is escaped.
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
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Returns a sentence from elsewhere, such as an error of a library, with its control characters escaped. Quotes,
/// backslashes and line ends stay.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    escape_lines(text, |character, escaped| escaped.extend(character.escape_default()))
}

/// Returns a JSON document with the characters escaped that a terminal would act on and JSON allows: DEL, the C1 control
/// characters, marks that change the direction of text. It is still the same document.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    // Outside strings, JSON has printable ASCII and line ends only.
    escape_lines(json, |character, escaped| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    })
}

/// Escapes what is unsafe to print, except line ends.
fn escape_lines(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let is_unsafe = |character| character != '\n' && is_unsafe_to_print(character);
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) {
            escape(character, &mut escaped);
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Returns a path for a message.
pub fn shown_path(path: impl AsRef<Path>) -> String {
    escape_bytes(path.as_ref().as_os_str().as_encoded_bytes())
}

/// Returns ` (key "...")` for a message, or nothing where there is no key.
pub fn shown_key(key: Option<&[u8]>) -> String {
    match key {
        Some(key) => format!(" (key \"{}\")", escape_bytes(key)),
        None => String::new(),
    }
}

/// Bytes of a name in a list of names.
const NAME_LEN_MAX: usize = 256;

/// Returns names for a message, with commas between them, or `none`. Of a long name, the beginning is shown.
pub fn shown_names(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown = |name: &String| escape_bytes(name.as_bytes().get(..NAME_LEN_MAX).unwrap_or(name.as_bytes()));
    names.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Control characters, and those that reorder or hide the text around them.
fn is_unsafe_to_print(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_text_stays_and_the_rest_is_escaped() {
        assert_eq!(escape_bytes("n01/täst 1.jpg".as_bytes()), "n01/täst 1.jpg");
        assert_eq!(escape_bytes(b"a\n\x1b[31m\"\\\xff"), "a\\n\\u{1b}[31m\\\"\\\\\\xff");
        assert_eq!(escape_bytes("a\u{202e}b".as_bytes()), "a\\u{202e}b");
    }

    #[test]
    fn a_sentence_keeps_its_quotes_and_lines() {
        assert!(matches!(escape_controls("a \"b\\c\"\nd"), Cow::Borrowed("a \"b\\c\"\nd")));
        assert_eq!(escape_controls("a\x1b[31m\u{9b}\n\"b\""), "a\\u{1b}[31m\\u{9b}\n\"b\"");
    }

    #[test]
    fn paths_keys_and_lists_of_names_are_escaped() {
        assert_eq!(shown_path(Path::new("a/\x07.tar")), "a/\\u{7}.tar");
        assert_eq!((shown_key(Some(b"\x1bk")), shown_key(None)), (" (key \"\\u{1b}k\")".to_owned(), String::new()));
        assert_eq!(shown_names(&["a".to_owned(), "\x08".to_owned()]), "a, \\u{8}");
        assert_eq!(shown_names(&[]), "none");
    }
}
