//! Keys that belong together: `image-*` and `label-*`.

/// A key with one `*` in it, which stands for any bytes, one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
}

impl Pattern {
    /// The pattern in `text`; `None` where it has not one `*`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (prefix, suffix) = text.split_once('*').filter(|(_, suffix)| !suffix.contains('*'))?;
        Some(Self { prefix: prefix.into(), suffix: suffix.into() })
    }

    /// What `*` stands for in a key.
    pub(super) fn stem<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let stem = key.strip_prefix(self.prefix.as_slice())?.strip_suffix(self.suffix.as_slice())?;
        Some(stem).filter(|stem| !stem.is_empty())
    }

    /// The key in which `*` stands for `stem`.
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
