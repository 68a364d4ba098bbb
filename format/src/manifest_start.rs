//! The start of a manifest, which is the same in every version: `{"format": "grainstore", "version": N`. It is read
//! before the checksum is compared, and before the file has to be JSON. spec.md: MAN-5.

use crate::FormatError;

/// The two members are within this many bytes.
const MAX_START_LEN: usize = 4096;

/// The version of the manifest that begins with these bytes; the largest number for one that no 64 bits hold.
pub(crate) fn version_of(bytes: &[u8]) -> Result<u64, FormatError> {
    let start = bytes.get(..MAX_START_LEN).unwrap_or(bytes);
    after_tokens(start, &[b"{", b"\"format\"", b":", b"\"grainstore\"", b",", b"\"version\"", b":"])
        .and_then(leading_integer)
        .ok_or_else(|| FormatError::NotGrainstore {
            what: "manifest",
            found: "it does not begin with {\"format\": \"grainstore\", \"version\": and a number".into(),
        })
}

/// What follows the tokens; there may be whitespace before each of them, and after the last.
fn after_tokens<'a>(mut bytes: &'a [u8], tokens: &[&[u8]]) -> Option<&'a [u8]> {
    for token in tokens {
        bytes = without_space(bytes).strip_prefix(*token)?;
    }
    Some(without_space(bytes))
}

fn without_space(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    bytes.get(len..).unwrap_or_default()
}

/// An integer without a sign or leading zeros, whose end can be seen. spec.md: CON-8.
fn leading_integer(bytes: &[u8]) -> Option<u64> {
    let len = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = bytes.split_at_checked(len)?;
    let is_plain = match digits {
        [] => false,
        [b'0', rest @ ..] => rest.is_empty(),
        _ => true,
    };
    let ends = matches!(without_space(rest), [b',' | b'}', ..]);
    (is_plain && ends).then(|| std::str::from_utf8(digits).ok()?.parse().ok().or(Some(u64::MAX))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MAN-5, CON-8
    #[test]
    fn the_version_is_read_from_any_manifest_that_begins_as_it_should() {
        let version = |text: &str| version_of(text.as_bytes()).ok();
        assert_eq!(version(r#"{"format": "grainstore", "version": 0}"#), Some(0));
        assert_eq!(version("\r\n{\t\"format\"\n:\"grainstore\" , \"version\":12  ,\u{1} not JSON"), Some(12));
        assert_eq!(version(r#"{"format":"grainstore","version":99999999999999999999999,"#), Some(u64::MAX));
        for text in [
            "",
            "{}",
            r#"{"version":1,"format":"grainstore"}"#,
            r#"{"format":"grainstore","more":1,"version":1}"#,
            r#"{"format":"parquet","version":1}"#,
            r#"{"format":"grainstore","version":-1}"#,
            r#"{"format":"grainstore","version":-0}"#,
            r#"{"format":"grainstore","version":01}"#,
            r#"{"format":"grainstore","version":1.0}"#,
            r#"{"format":"grainstore","version":1e3}"#,
            r#"{"format":"grainstore","version":"1"}"#,
            r#"{"format":"grainstore","version":1"#,
            "\u{feff}{\"format\":\"grainstore\",\"version\":1}",
        ] {
            assert_eq!(version(text), None, "{text}");
        }
    }

    /// MAN-5
    #[test]
    fn the_version_is_within_the_first_block() {
        let spaced = |spaces: usize| format!("{}{{\"format\":\"grainstore\",\"version\":1,", " ".repeat(spaces));
        let longest = 4096 - spaced(0).len();
        assert_eq!(version_of(spaced(longest).as_bytes()).ok(), Some(1));
        assert!(version_of(spaced(longest + 1).as_bytes()).is_err());
    }
}
