//! Which format bytes are of.

use std::fmt::Write as _;

use crate::error::PictureError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Jpeg,
    Png,
    WebP,
}

impl Kind {
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, PictureError> {
        if bytes.starts_with(&[0xFF, 0xD8, 0xFF]) {
            Ok(Self::Jpeg)
        } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Ok(Self::Png)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Ok(Self::WebP)
        } else {
            let mut head = String::new();
            for byte in bytes.iter().take(8) {
                // Writing to a string does not fail.
                let _ = write!(head, "{byte:02x}");
            }
            Err(PictureError::UnknownFormat { head: if head.is_empty() { "nothing".into() } else { head } })
        }
    }
}
