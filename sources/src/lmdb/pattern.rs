//! Patterns of keys that belong to one sample: `image-*` and `label-*`.

/// A key with one `*` in it, which matches one byte or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
}

impl Pattern {
    /// The pattern in `text`; `None` where it does not have exactly one `*`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (prefix, suffix) = text.split_once('*').filter(|(_, suffix)| !suffix.contains('*'))?;
        Some(Self { prefix: prefix.into(), suffix: suffix.into() })
    }

    /// The bytes of a key that `*` matches.
    pub(super) fn stem<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let stem = key.strip_prefix(self.prefix.as_slice())?.strip_suffix(self.suffix.as_slice())?;
        Some(stem).filter(|stem| !stem.is_empty())
    }

    /// The key in which `*` is `stem`.
    pub(super) fn key(&self, stem: &[u8]) -> Vec<u8> {
        [&self.prefix, stem, &self.suffix].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_byte_or_more() {
        let pattern = Pattern::parse("image-*.x").unwrap();
        assert_eq!(pattern.stem(b"image-07.x"), Some(&b"07"[..]));
        assert_eq!(pattern.key(b"07"), b"image-07.x");
        for key in [&b"image-.x"[..], b"image-07", b"label-07.x", b"image.x"] {
            assert_eq!(pattern.stem(key), None);
        }
        assert_eq!([Pattern::parse("image"), Pattern::parse("*-*")], [None, None]);
    }
}
